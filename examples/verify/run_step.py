"""The reference train step, run by the user's own JAX on the device that it shows.

    python3 run_step.py < config.json

reads a whole configuration of one device (what `hbmsim calibrate --step` sends) and prints one line
of JSON:
    {"by": "jax 0.9.0", "platform": "gpu", "device": "NVIDIA H100 80GB HBM3", "peak_bytes": ...,
     "peak_by": "device", "step_seconds": ..., "steps": 12, "versions": {...}}
peak_by is "compiler" where the device counts no memory (JAX's processor backend): then the peak is
what the compiled program takes. Errors are told as verify.py tells them."""
import importlib.metadata
import importlib.util
import json
import time

import assignment
import config as configuration
from config import Machine, Refused
from verify import main, print_line

LEAST_SECONDS, LEAST_STEPS, MOST_STEPS = 2.0, 3, 50


def versions():
    found = {}
    for name in ('jax', 'jaxlib'):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def fill(jax, shapes):
    """Arrays of these shapes, a leaf after the other: small normal numbers, as a model starts with.
    """
    jnp = jax.numpy
    leaves, form = jax.tree.flatten(shapes)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    out = []
    for key, leaf in zip(keys, leaves):
        def make(key, leaf=leaf):
            if jnp.issubdtype(leaf.dtype, jnp.integer):
                return jnp.zeros(leaf.shape, leaf.dtype)
            return (0.02 * jax.random.normal(key, leaf.shape, jnp.bfloat16)).astype(leaf.dtype)
        out.append(jax.jit(make, out_shardings=leaf.sharding)(key))
    return jax.tree.unflatten(form, out)


def positive(jax, state):
    """Second moments are no negative numbers."""
    state['opt'] = jax.tree.map(abs, state['opt'])
    return state


def run_steps(jax, compiled, state, tokens):
    """Seconds of a step, and how many were timed; two run before."""
    for _ in range(2):
        state, metrics = compiled(state, tokens, tokens)
    jax.block_until_ready(metrics)
    steps, begin = 0, time.monotonic()
    while True:
        state, metrics = compiled(state, tokens, tokens)
        jax.block_until_ready(metrics)
        steps += 1
        took = time.monotonic() - begin
        if steps >= LEAST_STEPS and (took >= LEAST_SECONDS or steps >= MOST_STEPS):
            return took / steps, steps


def measure(jax, keys, device):
    from step import Step
    f, (shapes, tokens, _) = Step(keys, [device]).make()
    compiled = f.lower(shapes, tokens, tokens).compile()
    planned = assignment.total(assignment.of_analysis(compiled.memory_analysis()))
    state = positive(jax, fill(jax, shapes))
    words = jax.random.randint(jax.random.key(2), tokens.shape, 0, keys.model.vocab)
    seconds, steps = run_steps(jax, compiled, state, jax.device_put(words, tokens.sharding))
    stats = device.memory_stats() or {}
    told = stats.get('peak_bytes_in_use')
    return dict(peak_bytes=told or planned, peak_by='device' if told else 'compiler',
                compiled_bytes=planned, step_seconds=seconds, steps=steps)


def answer_of(root, out, folder):
    if not isinstance(root, dict) or 'hardware' not in root:
        raise Refused('hardware: is not in the configuration; print it with hbmsim')
    if root['hardware']['count'] != 1:
        raise Refused('hardware.count: a step is run on one device; allowed: 1')
    if importlib.util.find_spec('jax') is None:
        raise Machine('JAX is missing; install it for this device: pip install "jax[cuda12]"')
    import jax
    device = jax.devices()[0]
    kind = {'cpu': 'cuda', 'gpu': 'cuda'}.get(device.platform, device.platform)
    if 'rocm' in getattr(device.client, 'platform_version', '').lower():
        kind = 'rocm'
    keys = configuration.read(root, kind)
    flash = any(b.attention.kind == 'gqa' and b.attention.kernel == 'flash'
                for b in keys.model.blocks)
    if flash and device.platform == 'cpu':
        raise Refused('attention.kernel: flash does not run on a processor; allowed: naive')
    found = versions()
    about = dict(by='jax ' + found.get('jax', '?'), platform=device.platform,
                 device=device.device_kind, versions=found)
    print_line(out, {**about, **measure(jax, keys, device)})


if __name__ == '__main__':
    main(answer_of)
