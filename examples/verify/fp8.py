"""Products in 8 bit, as qwix makes them of a layer's (MaxText's `quantization: fp8_full`): operands
in e4m3, gradients in e5m2, results in the activations' dtype.

tensorwise: a fixed range for operands (`fixed,-224,224`), so that there is one scale and nothing is
looked through for it; what lies outside gets no gradient, so that the operands are kept as they came
beside their copies. rowwise: each row and column has the scale of its own greatest value."""
import functools

import jax
import jax.numpy as jnp
from jax import lax

OPERAND, GRADIENT = jnp.float8_e4m3fn, jnp.float8_e5m2
RANGE = 224.  # of the operands, either way


def quantised(x, dtype, greatest):
    """Of a tensor whose greatest value is that: the copy and the scale."""
    most = float(jnp.finfo(dtype).max)
    scale = (greatest / most).astype(x.dtype)
    return jnp.clip(x / scale, -most, most).astype(dtype), scale


def greatest_of(x, summed):
    """Along the dimensions that a product sums over."""
    found = jnp.max(jnp.abs(x), axis=summed, keepdims=True)
    return jnp.where(found > 0, found, jnp.ones_like(found))


def summed_of(one, other, out):
    """Dimensions of the first that the product has no more."""
    return tuple(i for i, c in enumerate(one) if c not in out)


def turned(scale, form, out):
    """A scale of `form`'s dimensions laid along `out`'s."""
    kept = [c for c in out if c in form]
    scale = jnp.transpose(jnp.squeeze(scale, [i for i, c in enumerate(form) if c not in out]),
                          [[c for c in form if c in out].index(c) for c in kept])
    return jnp.expand_dims(scale, [i for i, c in enumerate(out) if c not in form])


def operand(x, form, out, kind):
    if kind == 'tensorwise':
        return quantised(x, OPERAND, jnp.full((1,) * x.ndim, RANGE, x.dtype))
    return quantised(x, OPERAND, greatest_of(x, summed_of(form, None, out)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def product(x, w, form, kind):
    return forward(x, w, form, kind)[0]


def forward(x, w, form, kind):
    (fx, fw), out = form.split('->')[0].split(','), form.split('->')[1]
    qx, sx = operand(x, fx, out, kind)
    qw, sw = operand(w, fw, out, kind)
    y = jnp.einsum(form, qx, qw, preferred_element_type=x.dtype)
    if kind == 'tensorwise':
        y = y * sx.reshape(()) * sw.reshape(())
    else:
        y = y * turned(sx, fx, out) * turned(sw, fw, out)
    return y, (x, w, qx, sx, qw, sw)


def backward(form, kind, kept, g):
    x, w, qx, sx, qw, sw = kept
    (fx, fw), out = form.split('->')[0].split(','), form.split('->')[1]

    def toward(q, scale, fq, to):
        """The gradient of the other operand; the scale of this one goes into what comes in."""
        scaled = g * (scale.reshape(()) if kind == 'tensorwise' else turned(scale, fq, out))
        qg, sg = quantised(scaled, GRADIENT, greatest_of(scaled, summed_of(out, None, to)))
        made = jnp.einsum('%s,%s->%s' % (out, fq, to), qg, q, preferred_element_type=g.dtype)
        return made * turned(sg, out, to)
    dx, dw = toward(qw, sw, fw, fx), toward(qx, sx, fx, fw)
    if kind == 'tensorwise':
        dx, dw = (jnp.where(jnp.abs(a) <= RANGE, d, jnp.zeros_like(d)) for a, d in ((x, dx), (w, dw)))
    return dx, dw


product.defvjp(forward, backward)


DOWN = lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), [0], [0])
WEIGHT = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def grouped(x, w, sizes, kind, over):
    """Rows sorted by expert times the weights of theirs. over: the axis that shares the weights and
    along which dimension, where they are gathered here, in 8 bit; None: they have come whole."""
    return grouped_forward(x, w, sizes, kind, over)[0]


def grouped_forward(x, w, sizes, kind, over):
    (qx, sx), (qw, sw) = operand(x, 'mk', 'mn', kind), operand(w, 'gkn', 'n', kind)
    if over:
        qw = lax.all_gather(qw, over[0], axis=over[1], tiled=True)
    y = lax.ragged_dot(qx, qw, sizes, preferred_element_type=x.dtype)
    return y * sx * sw.reshape(1, -1), (qx, sx, qw, sw, sizes)


def grouped_backward(kind, over, kept, g):
    qx, sx, qw, sw, sizes = kept
    down, across = g * sw.reshape(1, -1), g * sx
    qd, sd = quantised(down, GRADIENT, greatest_of(down, (1,)))
    qa, sa = quantised(across, GRADIENT, greatest_of(across, (0,)))
    dx = lax.ragged_dot_general(qd, qw, sizes, DOWN, preferred_element_type=g.dtype) * sd
    dw = lax.ragged_dot_general(qx, qa, sizes, WEIGHT, preferred_element_type=g.dtype) * sa
    if over:
        dw = lax.psum_scatter(dw, over[0], scatter_dimension=over[1], tiled=True)
    return dx, dw, None


grouped.defvjp(grouped_forward, grouped_backward)
