"""Layers one after another: unrolled, scanned, in nested scans, or as a pipeline's stages.

Each block has its own rematerialisation policy."""
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from layer import Layer, Unit


def policy_of(remat):
    """JAX's policy of {policy, save, offload}."""
    policies = jax.checkpoint_policies
    if remat.offload:
        return policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(remat.save),
            names_which_can_be_offloaded=list(remat.offload),
            offload_src='device', offload_dst='pinned_host')
    if remat.policy == 'dots':
        return policies.dots_saveable
    if remat.policy == 'dots_no_batch':
        return policies.dots_with_no_batch_dims_saveable
    if remat.policy == 'names' and remat.save:
        return policies.save_only_these_names(*remat.save)
    return policies.nothing_saveable


def rematerialised(f, remat, scanned=True):
    """Inside a scan the loop itself keeps the compiler from merging the two computations."""
    if remat.policy == 'none':
        return f
    return jax.checkpoint(f, policy=policy_of(remat), prevent_cse=not scanned)


def outer_count(stack, depth):
    """stack.outer, or the largest divisor up to the root of the depth."""
    return stack.outer or max(n for n in range(1, math.isqrt(depth) + 1) if depth % n == 0)


def stacked(weights, sizes, spec):
    """Weights with leading dimensions: layers, outer blocks and layers, or stages and layers."""
    return {k: (tuple(sizes) + s, P(*(tuple(spec) + tuple(p)))) for k, (s, p) in weights.items()}


class Stack:
    def __init__(self, config, layout):
        self.config, self.layout = config, layout
        self.layers = [(Layer if b.unit == 1 else Unit)(config, b, layout)
                       for b in config.model.blocks]

    def plain_layers(self):
        """Every layer of which there are weights of its own."""
        return [one for layer in self.layers for one in getattr(layer, 'layers', [layer])]

    def key(self, i):
        """Where a block's weights stand in the tree: layers, layers2, ..."""
        return 'layers%d' % (i + 1) if i else 'layers'

    def weights(self):
        """name -> definitions of each block's layers."""
        tree, first = {}, 0
        for i, layer in enumerate(self.layers):
            w, depth = layer.weights(), layer.block.repeat // layer.block.unit
            if self.layout.stage:
                stages = self.config.mesh.pipeline
                tree[self.key(i)] = stacked(w, (stages, depth // stages), ('stage', None))
            elif self.config.stack.form == 'loop':
                tree.update({'l%03d' % (first + n): dict(w) for n in range(depth)})
            elif self.config.stack.form == 'nested':
                outer = outer_count(self.config.stack, depth)
                tree[self.key(i)] = stacked(w, (outer, depth // outer), (None, None))
            else:
                tree[self.key(i)] = stacked(w, (depth,), (None,))
            first += depth
        return tree

    def __call__(self, params, x):
        if self.layout.stage:
            return Pipeline(self.config, self.layout, self.layers[0])(params[self.key(0)], x)
        first = 0
        for i, layer in enumerate(self.layers):
            depth = layer.block.repeat // layer.block.unit
            if self.config.stack.form == 'loop':
                f = rematerialised(layer, layer.block.remat, scanned=False)
                for n in range(depth):
                    x = f(params['l%03d' % (first + n)], x)
            else:
                x = self.scan(layer, params[self.key(i)], x)
            first += depth
        return x

    def scan(self, layer, params, x):
        stack = self.config.stack
        f = rematerialised(layer, layer.block.remat)

        def body(x, p):
            return f(p, x), None
        if stack.form == 'scan':
            return lax.scan(body, x, params, unroll=stack.unroll)[0]

        def outer(x, p):
            def inner(x, p):
                return lax.scan(body, x, p, unroll=stack.unroll)[0]
            if self.config.remat.outer:
                inner = jax.checkpoint(inner, prevent_cse=False)
            return inner(x, p), None
        return lax.scan(outer, x, params)[0]


class Pipeline:
    """Microbatches move through the stages in a buffer that shifts by one each iteration."""

    def __init__(self, config, layout, layer):
        self.config, self.layout, self.layer = config, layout, layer
        self.stages = config.mesh.pipeline
        self.keys = config.pipeline

    def stage(self, params, x):
        f = rematerialised(self.layer, self.layer.block.remat) if self.keys.remat_layer \
            else self.layer
        if self.config.stack.form == 'loop':
            for i in range(self.layer.block.repeat // self.layer.block.unit // self.stages):
                x = f({k: v[i] for k, v in params.items()}, x)
            return x
        return lax.scan(lambda x, p: (f(p, x), None), x, params)[0]

    def shift(self, state, spec):
        n = self.stages
        if self.keys.shift == 'roll':
            return jnp.roll(state, 1, 0)
        if self.keys.shift == 'shard_map':
            ring = [(i, (i + 1) % n) for i in range(n)]
            return jax.shard_map(lambda s: lax.ppermute(s, 'stage', ring), mesh=self.layout.mesh,
                                 in_specs=P(*spec), out_specs=P(*spec), check_vma=False)(state)
        return jnp.concatenate([jnp.zeros_like(state[:1]), state[:-1]], 0)

    def iteration(self, params, carry, new):
        """All stages once. carry: the state, or (state, outputs, iteration)."""
        at, keys = self.layout, self.keys
        spec = ('stage',) + at.residual()
        buffered = keys.outputs == 'buffer'
        bound = keys.constraints in ('state', 'all', 'replicate')
        state = carry[0] if buffered else carry
        moved = self.shift(state, spec)
        if bound:
            moved = at.constrain(moved, *spec)
        index = lax.broadcasted_iota(jnp.int32, moved.shape, 0)
        state = jnp.where(index == 0, new[None], moved)
        if bound:
            state = at.constrain(state, *spec)
        if keys.iteration_save:
            state = checkpoint_name(state, 'iter_in')
        if keys.constraints == 'all':
            specs = {k: P(*(('stage', None) + tuple(p)))
                     for k, (s, p) in self.layer.weights().items()}
            params = {k: lax.with_sharding_constraint(v, at.sharding(specs[k]))
                      for k, v in params.items()}
        out = jax.vmap(self.stage, spmd_axis_name='stage')(params, state)
        if bound:
            out = at.constrain(out, *spec)
        y = out[-1]
        if keys.constraints == 'all':
            y = at.constrain(y, *at.residual())
            out = at.constrain(out, *spec)
        if not buffered:
            return out, y
        _, outputs, t = carry
        outputs = lax.dynamic_update_index_in_dim(
            outputs, y, jnp.maximum(t - (self.stages - 1), 0), 0)
        return (out, outputs, t + 1), None

    def __call__(self, params, x):
        at, keys, n = self.layout, self.keys, self.stages
        b, s, d = x.shape
        count = keys.microbatches
        at.in_pipeline = True
        x = at.constrain(x.reshape(count, b // count, s, d), None, *at.residual())
        x = jnp.concatenate([x, jnp.zeros((n - 1,) + x.shape[1:], x.dtype)], 0)

        def iteration(carry, new):
            return self.iteration(params, carry, new)
        if keys.remat_iteration:
            saved = jax.checkpoint_policies.save_only_these_names(*keys.iteration_save) \
                if keys.iteration_save else None
            iteration = jax.checkpoint(iteration, prevent_cse=False, policy=saved)
        spec = ('stage',) + at.residual()
        state = at.constrain(jnp.zeros((n, b // count, s, d), x.dtype), *spec)
        if keys.outputs == 'buffer':
            outputs = jnp.zeros((count, b // count, s, d), x.dtype)
            (_, y, _), _ = lax.scan(iteration, (state, outputs, jnp.int32(0)), x)
        else:
            _, y = lax.scan(iteration, state, x)
            y = y[n - 1:]
        at.in_pipeline = False
        return at.constrain(y.reshape(b, s, d), *at.residual())
