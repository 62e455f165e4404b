"""The train step: loss, gradients (accumulated), update; with the sharding of all that goes in."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

import optimizer
from layer import DTYPES, F32, MASKED
from sharding import Layout, map_defs
from stack import Stack


class Step:
    def __init__(self, config, devices):
        self.config = config
        self.layout = Layout(config, devices)
        self.batch_axes = self.layout.batch
        self.stack = Stack(config, self.layout)
        self.last = self.stack.plain_layers()[-1]
        self.dtype = DTYPES[config.precision.compute]

    # ---- what there is: trees of (shape, spec)
    def weights(self):
        m, at = self.config.model, self.layout
        over = at.tensor if self.config.sharding.vocab_over_tensor else None
        tree = dict(embed=((m.vocab, m.d_model), P(over, at.fsdp)))
        tree.update(self.last.norm_weights('final_norm'))
        if m.positions:
            tree['positions'] = ((m.positions, m.d_model), P(None, at.fsdp))
        if not m.tied_embeddings:
            tree['unembed'] = ((m.d_model, m.vocab), P(at.fsdp, over))
        tree.update(self.stack.weights())
        for k in range(m.mtp):
            tree['mtp%d' % (k + 1)] = self.depth_weights()
        return tree

    def depth_weights(self):
        """Of a depth of multi-token prediction: what joins a hidden state and the next token's
        embedding, and a layer like the last."""
        d, one = self.config.model.d_model, self.last
        return dict(one.weights(), joint=((2 * d, d), P(self.layout.fsdp, None)),
                    **one.norm_weights('hidden_norm'), **one.norm_weights('embed_norm'))

    def state(self):
        """The step's state as shapes with their shardings and places."""
        c, weights = self.config, self.weights()
        host = 'pinned_host' if c.optimizer.offload == 'pinned_host' else None
        params_host = 'pinned_host' if c.optimizer.params_offload == 'pinned_host' else None
        ema_host = 'pinned_host' if c.optimizer.ema == 'pinned_host' else None

        def array(dtype, place):
            return lambda w: jax.ShapeDtypeStruct(
                w[0], dtype or w[2], sharding=self.layout.sharding(w[1], place))
        tree = dict(params=map_defs(array(DTYPES[c.precision.params], params_host), weights),
                    step=jax.ShapeDtypeStruct((), jnp.int32, sharding=self.layout.sharding(P())))
        if c.precision.master != 'none':
            tree['master'] = map_defs(array(F32, host), weights)
        tree['opt'] = {k: map_defs(array(None, host), t)
                       for k, t in optimizer.states(c.optimizer, weights).items()}
        if c.optimizer.ema != 'none':
            tree['ema'] = map_defs(array(F32, ema_host), weights)
        return tree

    # ---- loss
    def cross_entropy(self, x, head, labels):
        c, at = self.config, self.layout
        if c.loss.dot == 'f32':
            logits = jnp.einsum('bsd,dv->bsv', x, head, preferred_element_type=F32)
        else:
            logits = jnp.einsum('bsd,dv->bsv', x, head).astype(F32)
        if c.loss.softcap:
            logits = c.loss.softcap * jnp.tanh(logits / c.loss.softcap)
        over = at.tensor if c.sharding.vocab_over_tensor else None
        logits = at.constrain(logits, at.batch, at.seq, over)
        total = jax.nn.logsumexp(logits, -1)
        if c.loss.onehot:
            hit = jnp.sum(logits * jax.nn.one_hot(labels, c.model.vocab, dtype=F32), -1)
        else:
            hit = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return jnp.sum(total - hit)

    def embed(self, params, tokens):
        c, at = self.config, self.layout
        table = params['embed'].astype(self.dtype)
        if c.embedding.lookup == 'onehot':
            x = jax.nn.one_hot(tokens, c.model.vocab, dtype=self.dtype) @ table
        else:
            x = table[tokens]
        if c.model.positions:
            x = x + params['positions'].astype(self.dtype)[:tokens.shape[1]][None]
        return at.constrain(x, *at.residual())

    def make_mask(self):
        """mask: causal_materialised: an array of zeros and -1e30 for all sequences."""
        c, at = self.config, self.layout
        if not any(b.attention.mask == 'causal_materialised' for b in c.model.blocks):
            return
        seq = c.batch.seq
        count = c.batch['global'] // (c.pipeline.microbatches if at.stage else 1)
        count //= c.batch.accumulate
        seen = (jnp.arange(seq)[:, None] >= jnp.arange(seq)[None])[None, None, None]
        seen = jnp.broadcast_to(seen, (count, 1, 1, seq, seq))
        mask = at.constrain(jnp.where(seen, 0., MASKED).astype(F32), at.batch, *(None,) * 4)
        for layer in self.stack.plain_layers():
            layer.mask = mask

    def loss(self, params, tokens, labels):
        c, at = self.config, self.layout
        at.batch = self.batch_axes
        if c.step.cast == 'upfront':
            params = jax.tree.map(lambda a: a.astype(self.dtype), params)
        x = self.embed(params, tokens)
        self.make_mask()
        x = self.stack(params, x)
        if c.sharding.ends_over_pipeline and at.stage:
            at.batch = tuple(at.batch or ()) + ('stage',)
            x = at.constrain(x, at.batch, at.seq, None)
        return self.head_loss(params, x, labels, c.loss.chunks) + \
            self.further_losses(params, x, tokens, labels)

    def further_losses(self, params, x, tokens, labels):
        """Multi-token prediction: each depth a layer more, which nothing makes again, and the
        model's own head on the whole of it."""
        at, total = self.layout, 0.
        for k in range(self.config.model.mtp):
            w = params['mtp%d' % (k + 1)]
            tokens, labels = (jnp.roll(t, -1, 1).at[:, -1].set(0) for t in (tokens, labels))
            both = jnp.concatenate([self.last.norm(self.embed(params, tokens), w, 'embed_norm'),
                                    self.last.norm(x, w, 'hidden_norm')], -1)
            x = at.constrain(both @ w['joint'].astype(self.dtype), *at.residual())
            x = self.last(w, x)
            total += .3 / self.config.model.mtp * self.head_loss(params, x, labels, 1)
        return total

    def head_loss(self, params, x, labels, n):
        c, at = self.config, self.layout
        x = self.last.norm(x, params, 'final_norm')
        x = at.constrain(x, at.batch, at.seq, None)
        head = params['embed'].astype(self.dtype).T if c.model.tied_embeddings \
            else params['unembed'].astype(self.dtype)
        b, s = labels.shape
        if n == 1:
            return self.cross_entropy(x, head, labels) / (b * s)
        x = x.reshape(b, n, s // n, -1).transpose(1, 0, 2, 3)
        labels = labels.reshape(b, n, s // n).transpose(1, 0, 2)
        part = jax.checkpoint(lambda x, l: self.cross_entropy(x, head, l), prevent_cse=False)
        total, _ = lax.scan(lambda sum_, xl: (sum_ + part(*xl), None), jnp.zeros((), F32),
                            (x, labels))
        return total / (b * s)

    # ---- gradients
    def gradients(self, params, tokens, labels, specs):
        c, at = self.config, self.layout
        value_and_grad = jax.value_and_grad(self.loss)
        n, b, seq = c.batch.accumulate, c.batch['global'], c.batch.seq
        spread = at.devices > 1
        if n == 1:
            loss, g = value_and_grad(params, tokens, labels)
        else:
            def split(t):
                if not spread:
                    return t.reshape(n, b // n, seq)
                return lax.with_sharding_constraint(
                    t.reshape(b // n, n, seq).swapaxes(0, 1),
                    at.sharding(P(None, self.batch_axes, at.seq)))
            zero = jax.tree.map(lambda p: jnp.zeros(p.shape, F32), params)
            if spread:
                zero = jax.tree.map(lax.with_sharding_constraint, zero, specs)

            def body(sums, microbatch):
                loss, g = value_and_grad(params, *microbatch)
                return (sums[0] + loss,
                        jax.tree.map(lambda a, b: a + b.astype(F32), sums[1], g)), None
            (loss, g), _ = lax.scan(body, (jnp.zeros((), F32), zero),
                                    (split(tokens), split(labels)))
            loss = loss / n
            g = jax.tree.map(lambda a: a / n, g)
        if spread:
            g = jax.tree.map(lax.with_sharding_constraint, g, specs)
        if c.precision.grads != 'params':
            g = jax.tree.map(lambda a: a.astype(DTYPES[c.precision.grads]), g)
        return loss, g

    def clip(self, g, metrics):
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(a.astype(F32))) for a in jax.tree.leaves(g)))
        scale = jnp.minimum(1., 1. / (norm + 1e-6))
        metrics['norm'] = norm
        return jax.tree.map(lambda a: a * scale.astype(a.dtype), g)

    # ---- the whole
    def here(self, tree, shapes):
        """Copies of a tree in the device's memory."""
        there = jax.tree.map(lambda a: NamedSharding(self.layout.mesh, a.sharding.spec,
                                                     memory_kind='device'), shapes)
        return jax.tree.map(jax.device_put, tree, there)

    def update(self, base, g, opt):
        """Every leaf after the other: the new base and its new states."""
        leaves, form = jax.tree.flatten(base)
        slots = {k: jax.tree.leaves(v) for k, v in opt.items()}
        new, out = [], {k: [] for k in slots}
        for i, (p, grad) in enumerate(zip(leaves, jax.tree.leaves(g))):
            leaf, st = optimizer.update(self.config.optimizer.name, grad, p,
                                        {k: v[i] for k, v in slots.items()})
            new.append(leaf)
            for k in out:
                out[k].append(st[k])
        return (jax.tree.unflatten(form, new),
                {k: jax.tree.unflatten(form, v) for k, v in out.items()})

    def make(self):
        """The jitted step, and its arguments as shapes."""
        c, at = self.config, self.layout
        shapes = self.state()
        places = jax.tree.map(lambda a: a.sharding, shapes)
        specs = jax.tree.map(lambda a: NamedSharding(at.mesh, a.sharding.spec), shapes['params'])
        params_dtype = DTYPES[c.precision.params]
        away = [k for k, there in (
            ('params', c.optimizer.params_offload), ('opt', c.optimizer.offload),
            ('master', c.optimizer.offload), ('ema', c.optimizer.ema))
            if there == 'pinned_host' and k in shapes]

        def step(state, tokens, labels):
            params = self.here(state['params'], shapes['params']) if 'params' in away \
                else state['params']
            loss, g = self.gradients(params, tokens, labels, specs)
            metrics = dict(loss=loss)
            if c.step.nan_to_num:
                g = jax.tree.map(jnp.nan_to_num, g)
            if c.optimizer.clip:
                g = self.clip(g, metrics)
            opt = self.here(state['opt'], shapes['opt']) if 'opt' in away else state['opt']
            base = params
            if 'master' in state:
                base = self.here(state['master'], shapes['master']) if 'master' in away \
                    else state['master']
            base, opt = self.update(base, g, opt)
            new = dict(params=jax.tree.map(lambda a: a.astype(params_dtype), base),
                       step=state['step'] + 1, opt=opt)
            if 'master' in state:
                new['master'] = base
            if 'ema' in state:
                mean = self.here(state['ema'], shapes['ema']) if 'ema' in away else state['ema']
                new['ema'] = jax.tree.map(lambda e, p: e * .999 + p.astype(F32) * .001, mean, base)
            for k in [k for k in ('opt', 'master', 'ema', 'params') if k in away]:
                new[k] = jax.tree.map(jax.device_put, new[k], places[k])
            return new, metrics
        metrics = dict(loss=at.sharding(P()))
        if c.optimizer.clip:
            metrics['norm'] = at.sharding(P())
        tokens = jax.ShapeDtypeStruct((c.batch['global'], c.batch.seq), jnp.int32,
                                      sharding=at.sharding(P(self.batch_axes, at.seq)))
        f = jax.jit(step, out_shardings=(places, metrics),
                    donate_argnums=(0,) if c.step.donate else ())
        return f, (shapes, tokens, tokens)
