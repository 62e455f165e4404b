"""Update rules, one leaf at a time in f32, and the tree of their states."""
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from layer import DTYPES
from sharding import map_defs

F32 = jnp.float32
RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, .9, .95, 1e-8, .1
FACTORED_FROM = 128  # adafactor: both sides of a matrix at least


def factored(shape):
    return len(shape) >= 2 and min(shape[-2:]) >= FACTORED_FROM


def states(keys, weights):
    """name -> tree of (shape, spec, dtype) like the weights."""
    kinds = [DTYPES[m] for m in keys.moments]

    def like(dtype):
        return map_defs(lambda w: (w[0], w[1], dtype), weights)
    if keys.name == 'adamw':
        return dict(m=like(kinds[0]), v=like(kinds[1]))
    if keys.name in ('momentum', 'lion', 'muon'):
        return dict(m=like(kinds[0]))
    if keys.name == 'adafactor':
        return dict(vr=map_defs(rows, weights), vc=map_defs(columns, weights))
    return {}


def full_spec(w):
    shape, spec = w
    return shape, tuple(spec) + (None,) * (len(shape) - len(tuple(spec)))


def rows(w):
    shape, spec = full_spec(w)
    if factored(shape):
        return (shape[:-1], P(*spec[:-1]), F32)
    return (shape, P(*spec), F32)


def columns(w):
    shape, spec = full_spec(w)
    if factored(shape):
        return (shape[:-2] + shape[-1:], P(*(spec[:-2] + spec[-1:])), F32)
    return ((1,), P(), F32)


def adamw(g, p, st):
    m = BETA1 * st['m'].astype(F32) + (1 - BETA1) * g
    v = BETA2 * st['v'].astype(F32) + (1 - BETA2) * g * g
    u = (m / (1 - BETA1)) / (jnp.sqrt(v / (1 - BETA2)) + EPSILON) + DECAY * p
    return p - RATE * u, dict(m=m.astype(st['m'].dtype), v=v.astype(st['v'].dtype))


def momentum(g, p, st):
    m = BETA1 * st['m'] + g
    return p - RATE * m, dict(m=m.astype(st['m'].dtype))


def lion(g, p, st):
    m = st['m'].astype(F32)
    u = jnp.sign(BETA1 * m + (1 - BETA1) * g) + DECAY * p
    return p - RATE * u, dict(m=(BETA2 * m + (1 - BETA2) * g).astype(st['m'].dtype))


def adafactor(g, p, st):
    square = g * g + 1e-30
    if factored(p.shape):
        vr = BETA2 * st['vr'] + (1 - BETA2) * square.mean(-1)
        vc = BETA2 * st['vc'] + (1 - BETA2) * square.mean(-2)
        r = lax.rsqrt(vr / vr.mean(-1, keepdims=True))
        u = g * r[..., None] * lax.rsqrt(vc)[..., None, :]
        new = dict(vr=vr, vc=vc)
    else:
        v = BETA2 * st['vr'] + (1 - BETA2) * square
        u = g * lax.rsqrt(v)
        new = dict(vr=v, vc=st['vc'])
    u = u / jnp.maximum(1., jnp.sqrt(jnp.mean(u * u)))
    return p - RATE * u - RATE * DECAY * p, new


def muon(g, p, st):
    m = BETA2 * st['m'] + g
    u = orthogonal(m) if factored(p.shape) else m
    return p - RATE * u - RATE * DECAY * p, dict(m=m.astype(st['m'].dtype))


def orthogonal(m):
    """Five Newton-Schulz iterations in bf16."""
    x = m.astype(jnp.bfloat16)
    turned = x.shape[-2] > x.shape[-1]
    if turned:
        x = jnp.swapaxes(x, -1, -2)
    size = jnp.sqrt(jnp.sum(x.astype(F32) ** 2, (-1, -2), keepdims=True)) + 1e-7
    x = x / size.astype(jnp.bfloat16)
    for _ in range(5):
        a = x @ jnp.swapaxes(x, -1, -2)
        b = -4.775 * a + 2.0315 * (a @ a)
        x = (3.4445 * x + b @ x).astype(jnp.bfloat16)
    if turned:
        x = jnp.swapaxes(x, -1, -2)
    return x.astype(F32)


RULES = dict(adamw=adamw, momentum=momentum, lion=lion, adafactor=adafactor, muon=muon,
             sgd=lambda g, p, st: (p - RATE * g, st))


def update(name, g, p, st):
    """The new leaf in its own dtype, and its new states."""
    new, st = RULES[name](g.astype(F32), p.astype(F32), st)
    return new.astype(p.dtype), st
