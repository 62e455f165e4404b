#!/usr/bin/env python3
"""Writes measured records of your own JAX step, for `hbmsim validate`.

    python3 jax_record.py MODULE:FUNCTION --config model.yaml --id my-run >>runs.jsonl

FUNCTION() returns (step, args): step is what you pass to jax.jit, or the jitted function itself
(with its donate_argnums and shardings); args are arrays or jax.ShapeDtypeStruct with shardings.
--steps N also runs the step N times on args that are arrays, if it returns what it takes first
(`state, ... = step(state, ...)`), times it and asks the device what it used at its peak: that
becomes a second record, ID-runtime. Only jax's public API is used; `hbmsim` must be in PATH, or
named with --hbmsim. A step that does not fit becomes a record with fits: false.

Run with jax 0.10.2 on the CPU: toy_step.py of this folder with toy.yaml, plain and with --steps 3
(a CPU has no memory_stats(), so there is no second record), and toy_step.py compiled ahead of
time for one TPU v5e core with a batch that does not fit (make_too_large), with libtpu 0.0.51.
"""
import argparse
import importlib
import subprocess
import sys
import time

import jax


def record(printed, options, ident, extra=()):
    """Passes what was printed to `hbmsim record`; its line goes to standard output."""
    versions = ["--version", "jax=" + jax.__version__]
    command = [options.hbmsim, "record", "--config", options.config, "--id", ident]
    command += ["--source", options.source, *versions, *extra, "-"]
    return subprocess.run(command, input=printed, text=True, check=False).returncode


def compile_step(step, args):
    """The compiled step and what its compiler says of its memory; no step where it refused."""
    jitted = step if hasattr(step, "lower") else jax.jit(step)
    try:
        compiled = jitted.lower(*args).compile()
    except jax.errors.JaxRuntimeError as error:
        return None, str(error)
    return compiled, str(compiled.memory_analysis())


def run_step(compiled, args, steps):
    """Seconds a step, the first not counted, and the device's statistics (None on a CPU)."""
    state, rest = args[0], args[1:]
    began = 0.0
    for i in range(steps + 1):
        if i == 1:
            began = time.perf_counter()
        out = compiled(state, *rest)
        state = out[0] if isinstance(out, tuple) else out
        jax.block_until_ready(state)
    return (time.perf_counter() - began) / steps, jax.local_devices()[0].memory_stats()


def main():
    parser = argparse.ArgumentParser(description="writes measured records of a JAX step")
    parser.add_argument("step", help="MODULE:FUNCTION, which returns (step, args)")
    parser.add_argument("--config", required=True, help="the hbmsim configuration that it runs")
    parser.add_argument("--id", required=True, help="the record's name")
    parser.add_argument("--source", default="user/jax_record.py")
    parser.add_argument("--steps", type=int, default=0, help="run it as well, so often")
    parser.add_argument("--hbmsim", default="hbmsim", help="the program")
    options = parser.parse_args()
    module, function = options.step.split(":")
    sys.path.insert(0, ".")
    step, args = getattr(importlib.import_module(module), function)()
    compiled, printed = compile_step(step, args)
    if compiled is None or options.steps < 1:
        return record(printed, options, options.id)
    try:
        seconds, stats = run_step(compiled, args, options.steps)
    except jax.errors.JaxRuntimeError as error:
        return record(printed + "\n" + str(error), options, options.id)
    timed = ["--fits", "yes", "--step-seconds", str(seconds)]
    status = record(printed, options, options.id, timed)
    if stats:
        status |= record(str(stats), options, options.id + "-runtime", timed)
    return status


if __name__ == "__main__":
    sys.exit(main())
