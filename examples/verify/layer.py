"""One transformer layer of a block: weights with their specs, attention, MLP or experts.

Tensors that a rematerialisation policy can name carry that name (checkpoint_name)."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import fp8

F32 = jnp.float32
DTYPES = {'f32': jnp.float32, 'bf16': jnp.bfloat16}
MASKED = -1e30
FLASH_BLOCK = 512  # rows of a tile of the TPU's flash kernel


class Layer:
    def __init__(self, config, block, layout):
        self.config, self.block, self.layout = config, block, layout
        self.attention_keys = block.attention
        self.dtype = DTYPES[config.precision.compute]
        self.mask = None  # of mask: causal_materialised, set by the step

    # ---- weights: name -> (shape, spec)
    def weights(self):
        w = self.latent_weights() if self.attention_keys.kind == 'mla' else self.grouped_weights()
        if self.attention_keys.sinks:
            w['sinks'] = ((self.attention_keys.heads,), P(None))
        for name in ('ln1', 'ln2') + (('ln1p', 'ln2p') if self.block.post_norm else ()):
            w.update(self.norm_weights(name))
        w.update(self.moe_weights() if self.block.get('moe') else
                 self.mlp_weights('w', self.block.mlp))
        return w

    def to_heads(self, wide, heads, width, over):
        """A projection to heads, which `over` splits; with split_heads a dimension of their own."""
        at = self.layout
        if self.attention_keys.split_heads:
            return (wide, heads, width), P(at.fsdp, over, None)
        return (wide, heads * width), P(at.fsdp, over)

    def from_heads(self, heads, width):
        at, d = self.layout, self.config.model.d_model
        if self.attention_keys.split_heads:
            return (heads, width, d), P(at.tensor, None, at.fsdp)
        return (heads * width, d), P(at.tensor, at.fsdp)

    def latent_weights(self):
        """Down to the ranks, a norm of each, up to the heads; the keys' rotary part comes with the
        values' rank and is all heads'."""
        a, at, d = self.attention_keys, self.layout, self.config.model.d_model
        w = dict(wkva=((d, a.kv_lora_rank + a.qk_rope_head_dim), P(at.fsdp, None)),
                 kvn=((a.kv_lora_rank,), P(None)),
                 wkvb=self.to_heads(a.kv_lora_rank, a.heads, a.qk_nope_head_dim + a.v_head_dim,
                                    at.tensor),
                 wo=self.from_heads(a.heads, a.v_head_dim))
        if a.q_lora_rank:
            w.update(wqa=((d, a.q_lora_rank), P(at.fsdp, None)), qn=((a.q_lora_rank,), P(None)))
        w['wq'] = self.to_heads(a.q_lora_rank or d, a.heads, a.head_dim, at.tensor)
        return w

    def grouped_weights(self):
        a, at, d = self.attention_keys, self.layout, self.config.model.d_model
        heads, kv, width = a.heads, a.kv_heads, a.head_dim
        over = at.heads(kv)
        w = dict(wq=self.to_heads(d, heads, width, at.tensor), wk=self.to_heads(d, kv, width, over),
                 wv=self.to_heads(d, kv, width, over), wo=self.from_heads(heads, width))
        if a.bias:
            w.update(bq=((heads * width,), P(at.tensor)), bk=((kv * width,), P(over)),
                     bv=((kv * width,), P(over)))
            if a.bias != 'qkv':
                w['bo'] = ((d,), P(at.fsdp))
        if a.qk_norm is True:
            w.update(qn=((width,), P(None)), kn=((width,), P(None)))
        return w

    def norm_weights(self, name):
        c = self.config
        over = self.layout.fsdp if c.sharding.norms == 'fsdp' else None
        w = {name: ((c.model.d_model,), P(over))}
        if self.block.norm == 'layernorm':
            w[name + 'b'] = ((c.model.d_model,), P(None))
        return w

    def mlp_weights(self, prefix, keys, width=0):
        at, d, f = self.layout, self.config.model.d_model, width or keys.d_ff
        w = {prefix + 'u': ((d, f), P(at.fsdp, at.tensor)),
             prefix + 'd': ((f, d), P(at.tensor, at.fsdp))}
        if keys.kind in ('swiglu', 'geglu'):
            w[prefix + 'g'] = w[prefix + 'u']
        if keys.bias:
            w.update({'b' + n: ((f,), P(at.tensor)) for n in 'ug' if prefix + n in w})
            w['bd'] = ((d,), P(at.fsdp))
        return w

    def moe_weights(self):
        at, d, moe = self.layout, self.config.model.d_model, self.block.moe
        e, f = moe.experts, moe.d_ff
        w = dict(wr=((d, e), P(at.fsdp, None)),
                 wg=((e, d, f), P(at.expert, at.fsdp, at.tensor)),
                 wu=((e, d, f), P(at.expert, at.fsdp, at.tensor)),
                 wd=((e, f, d), P(at.expert, at.tensor, at.fsdp)))
        if moe.router_bias:
            w['br'] = ((e,), P(None))
        if moe.bias:
            w.update(bg=((e, f), P(at.expert, at.tensor)), bu=((e, f), P(at.expert, at.tensor)),
                     bd=((e, d), P(at.expert, None)))
        if moe.shared_experts:
            w.update(self.mlp_weights('s', moe, moe.shared_d_ff))
        return w

    # ---- small pieces
    def cast(self, w):
        return w.astype(self.dtype)

    def product(self, form, x, w):
        """Of activations and a weight, in 8 bit with precision.fp8."""
        kind = self.config.precision.fp8
        if kind == 'none':
            return jnp.einsum(form, x, self.cast(w))
        return fp8.product(x, self.cast(w), form, kind)

    def grouped(self, x, w, sizes, along):
        """along: the dimension of the weights that fsdp splits."""
        kind = self.config.precision.fp8
        if kind == 'none':
            return lax.ragged_dot(x, self.cast(w), sizes)
        over = ('fsdp', along) if self.layout.fsdp and self.config.precision.fp8_gather else None
        return fp8.grouped(x, self.cast(w), sizes, kind, over)

    def norm(self, x, w, name):
        if self.block.norm == 'layernorm':
            return self.layer_norm(x, w[name], w[name + 'b'])
        return self.rms_norm(x, w[name])

    def rms_norm(self, x, scale):
        if self.config.precision.norm == 'f32':
            f = x.astype(F32)
            f = f * lax.rsqrt(jnp.mean(f * f, -1, keepdims=True) + 1e-5) * scale.astype(F32)
            return f.astype(self.dtype)
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5).astype(x.dtype) \
            * scale.astype(x.dtype)

    def layer_norm(self, x, scale, shift):
        f = x.astype(F32 if self.config.precision.norm == 'f32' else self.dtype)
        f = f - jnp.mean(f, -1, keepdims=True)
        f = f * lax.rsqrt(jnp.mean(f * f, -1, keepdims=True) + 1e-5)
        return (f * scale.astype(f.dtype) + shift.astype(f.dtype)).astype(self.dtype)

    def rope(self, x):
        width, seq = x.shape[-1], x.shape[1]
        rate = 1.0 / (500000.0 ** (np.arange(0, width, 2) / width))
        angle = jnp.arange(seq, dtype=F32)[:, None] * jnp.asarray(rate, F32)[None]
        cos, sin = jnp.cos(angle)[None, :, None, :], jnp.sin(angle)[None, :, None, :]
        a, b = jnp.split(x.astype(F32), 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(self.dtype)

    def qk_norm(self, q, k, w):
        if self.attention_keys.qk_norm is True:
            return self.rms_norm(q, w['qn']), self.rms_norm(k, w['kn'])
        one = jnp.ones((q.shape[-1],), F32)
        return self.rms_norm(q, one), self.rms_norm(k, one)

    # ---- attention: q [batch, seq, heads, width], k and v with their own number of heads
    def attention(self, q, k, v, sinks):
        a = self.attention_keys
        if a.kind == 'none':
            return q
        if a.kernel == 'naive':
            return self.naive(q, k, v, sinks)
        if a.kernel == 'blocked':
            return self.blocked(q, k, v, sinks)
        if self.config.compiler == 'xla-tpu':
            return self.splash(q, k, v, sinks)
        return self.cudnn(q, k, v)

    def weighted(self, scores, v, sinks):
        """Of scores [batch, kv heads, group, queries, keys]: the values' sum, [batch, queries, kv
        heads, group, width]. A sink is one score more in the softmax's sum, of no value."""
        o = jnp.einsum('bkgst,btkh->bskgh', jax.nn.softmax(scores, -1).astype(self.dtype), v)
        if sinks is None:
            return o
        rest = jax.nn.logsumexp(scores.astype(F32), -1) - \
            sinks.astype(F32).reshape(scores.shape[1], -1)[None, :, :, None]
        return o * jax.nn.sigmoid(rest).transpose(0, 3, 1, 2)[..., None].astype(self.dtype)

    def softcap(self, scores):
        cap = self.attention_keys.softcap
        return cap * jnp.tanh(scores / cap) if cap else scores

    def hidden(self, scores, rows, columns):
        """Scores of what a row must not see, out."""
        seen = rows[:, None] >= columns[None]
        if self.attention_keys.window:
            seen &= rows[:, None] - columns[None] < self.attention_keys.window
        return jnp.where(seen, scores, jnp.asarray(MASKED, scores.dtype))

    def naive(self, q, k, v, sinks):
        a = self.attention_keys
        b, s, heads, width = q.shape
        kv = k.shape[2]
        q = q.reshape(b, s, kv, heads // kv, width)
        dtype = F32 if a.softmax == 'f32' else self.dtype
        scores = jnp.einsum('bskgh,btkh->bkgst', q, k, preferred_element_type=dtype) \
            * (width ** -0.5)
        scores = self.softcap(scores)
        if a.mask == 'causal':
            scores = self.hidden(scores, jnp.arange(s), jnp.arange(s))
        elif a.mask == 'causal_materialised':
            scores = scores + self.mask.astype(scores.dtype)
        return self.weighted(scores, v, sinks).reshape(b, s, heads, v.shape[-1])

    def blocked(self, q, k, v, sinks):
        """Plain attention of one block of queries after another, made again in the backward pass:
        what stands in for a flash kernel where there is none."""
        b, s, heads, width = q.shape
        kv = k.shape[2]
        size = min(self.attention_keys.block, s)
        blocks = q.reshape(b, s // size, size, kv, heads // kv, width).transpose(1, 0, 2, 3, 4, 5)

        def one(args):
            i, qi = args
            scores = jnp.einsum('bskgh,btkh->bkgst', qi, k, preferred_element_type=F32) \
                * (width ** -0.5)
            scores = self.softcap(scores)
            rows = i * size + jnp.arange(size)
            seen = rows[:, None] >= jnp.arange(s)[None]
            if self.attention_keys.window:
                seen &= rows[:, None] - jnp.arange(s)[None] < self.attention_keys.window
            return self.weighted(jnp.where(seen, scores, MASKED), v, sinks)
        o = lax.map(jax.checkpoint(one, prevent_cse=False), (jnp.arange(s // size), blocks))
        return o.transpose(1, 0, 2, 3, 4, 5).reshape(b, s, heads, v.shape[-1])

    def splash(self, q, k, v, sinks):
        """The TPU's flash kernel, each device on its own heads and sequences."""
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as sk
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as sm
        a, at = self.attention_keys, self.layout
        s, width = q.shape[1], q.shape[3]
        n = min(FLASH_BLOCK, s)
        sizes = sk.BlockSizes(block_q=n, block_kv=n, block_kv_compute=n, block_q_dkv=n,
                              block_kv_dkv=n, block_kv_dkv_compute=n, block_q_dq=n, block_kv_dq=n)

        def head_mask():
            if a.window:
                return sm.LocalMask((s, s), (a.window - 1, 0), 0)
            return sm.CausalMask((s, s))

        def run(q, k, v, *sinks):
            mask = sm.MultiHeadMask([head_mask() for _ in range(q.shape[1])])
            kernel = sk.make_splash_mha(
                mask, block_sizes=sizes, head_shards=1, q_seq_shards=1,
                residual_checkpoint_name='attn_ctx',
                **(dict(attn_logits_soft_cap=float(a.softcap)) if a.softcap else {}))
            if sinks:
                return jax.vmap(lambda q, k, v: kernel(q, k, v, sinks=sinks[0]))(q, k, v)
            return jax.vmap(kernel)(q, k, v)
        q, k, v = [x.transpose(0, 2, 1, 3) for x in (q * (width ** -0.5), k, v)]
        q = q.astype(self.dtype)
        given = () if sinks is None else (sinks.astype(F32),)
        if at.devices == 1:
            o = run(q, k, v, *given)
        else:
            qs = P(at.batch, at.tensor, None, None)
            ks = P(at.batch, at.heads(a.kv_heads), None, None)
            o = jax.shard_map(run, mesh=at.mesh, in_specs=(qs, ks, ks) + (P(at.tensor),) * len(given),
                              out_specs=qs, check_vma=False)(q, k, v, *given)
        return o.transpose(0, 2, 1, 3)

    def cudnn(self, q, k, v):
        a = self.attention_keys
        keys = dict(implementation='cudnn')
        if a.mask == 'causal_materialised':
            keys['mask'] = self.mask[:, 0] >= 0
        else:
            keys['is_causal'] = a.mask == 'causal'
            if a.window:
                keys['local_window_size'] = (a.window - 1, 0)
        return jax.nn.dot_product_attention(q, k, v, **keys).astype(self.dtype)

    def project(self, y, w):
        """q, k and v of the normed residual."""
        a = self.attention_keys
        b, s, _ = y.shape
        if a.bias and not a.split_heads:
            return [(self.product('bsd,de->bse', y, w['w' + n]) + self.cast(w['b' + n])).reshape(
                b, s, -1, a.head_dim) for n in 'qkv']
        out = [self.heads_of(y, w['w' + n], a.head_dim) for n in 'qkv']
        if a.bias:
            out = [x + self.cast(w['b' + n]).reshape(x.shape[2:]) for x, n in zip(out, 'qkv')]
        return out

    def heads_of(self, x, w, width):
        """The product by a weight to heads: [batch, seq, heads, width]."""
        if self.attention_keys.split_heads:
            return self.product('bsd,dnh->bsnh', x, w)
        return self.product('bsd,de->bse', x, w).reshape(*x.shape[:2], -1, width)

    def latent(self, y, w):
        """q, k and v by way of low ranks (DeepSeek-V2): what has no position comes up from the
        rank of keys and values, the rotary part of the keys is one for all heads."""
        a, at = self.attention_keys, self.layout

        def down(name):
            return at.constrain(self.product('bsd,dr->bsr', y, w[name]), at.batch, at.seq, None)
        low_q = y
        if a.q_lora_rank:
            low_q = checkpoint_name(self.rms_norm(down('wqa'), w['qn']), 'mla_q')
        q = self.heads_of(low_q, w['wq'], a.head_dim)
        low, turned = jnp.split(down('wkva'), [a.kv_lora_rank], -1)
        low = checkpoint_name(self.rms_norm(low, w['kvn']), 'mla_kv')
        turned = checkpoint_name(turned, 'mla_kv')[:, :, None]
        q = at.constrain(q, at.batch, at.seq, at.tensor, None)
        up = at.constrain(self.heads_of(low, w['wkvb'], a.qk_nope_head_dim + a.v_head_dim),
                          at.batch, None, at.tensor, None)
        k, v = jnp.split(up, [a.qk_nope_head_dim], -1)
        if a.rope:
            plain, q = jnp.split(q, [a.qk_nope_head_dim], -1)
            q, turned = jnp.concatenate([plain, self.rope(q)], -1), self.rope(turned)
        turned = jnp.broadcast_to(turned, k.shape[:3] + turned.shape[3:])
        k = at.constrain(jnp.concatenate([k, turned], -1), at.batch, None, at.tensor, None)
        return q, k, v

    def full_rank(self, y, w):
        """q, k and v with their norms and rotations."""
        a, at = self.attention_keys, self.layout
        q, k, v = self.project(y, w)
        over = at.heads(a.kv_heads)
        q = at.constrain(q, at.batch, at.seq, at.tensor, None)
        k = at.constrain(k, at.batch, None, over, None)
        v = at.constrain(v, at.batch, None, over, None)
        if a.qk_norm:
            q, k = self.qk_norm(q, k, w)
        if a.rope:
            q, k = self.rope(q), self.rope(k)
        return q, k, v

    def attend(self, y, w):
        """Attention with its projections; without the residual."""
        a, at = self.attention_keys, self.layout
        b, s, _ = y.shape
        q, k, v = self.latent(y, w) if a.kind == 'mla' else self.full_rank(y, w)
        q, k, v = [checkpoint_name(x, n) for x, n in ((q, 'q'), (k, 'k'), (v, 'v'))]
        o = self.attention(q, k, v, w.get('sinks'))
        o = checkpoint_name(at.constrain(o, at.batch, at.seq, at.tensor, None), 'attn_ctx')
        if a.split_heads:
            o = self.product('bsnh,nhd->bsd', o, w['wo'])
        else:
            o = self.product('bse,ed->bsd', o.reshape(b, s, -1), w['wo'])
        if 'bo' in w:
            o = o + self.cast(w['bo'])
        return checkpoint_name(at.constrain(o, *at.residual()), 'attn_out')

    # ---- MLP
    def act(self, kind, gate, up):
        if kind == 'swiglu':
            return jax.nn.silu(gate) * up
        if kind == 'geglu':
            return jax.nn.gelu(gate) * up
        return jax.nn.gelu(up) if kind == 'gelu' else jnp.square(jax.nn.relu(up))

    def mlp(self, y, w, prefix, kind, names):
        """names: of the products for the gate and upwards."""
        at = self.layout
        spec = (at.batch, at.seq, at.tensor)

        def product(n):
            x = self.product('bsd,df->bsf', y, w[prefix + n])
            return x + self.cast(w['b' + n]) if prefix == 'w' and 'b' + n in w else x
        gate = None
        if kind in ('swiglu', 'geglu'):
            gate = checkpoint_name(at.constrain(product('g'), *spec), names[0])
        up = checkpoint_name(at.constrain(product('u'), *spec), names[1])
        act = checkpoint_name(self.act(kind, gate, up), 'mlp_act')
        out = self.product('bsf,fd->bsd', act, w[prefix + 'd'])
        return out + self.cast(w['bd']) if prefix == 'w' and 'bd' in w else out

    # ---- experts
    def route(self, y, w):
        """Weights and experts of each token's choice."""
        wanted = F32 if self.block.moe.router_dtype == 'f32' else self.dtype
        logits = jnp.einsum('bsd,de->bse', y, self.cast(w['wr']), preferred_element_type=wanted)
        if 'br' in w:
            logits = logits + w['br'].astype(logits.dtype)
        weights, experts = lax.top_k(jax.nn.softmax(logits, -1), self.block.moe.top_k)
        return weights / jnp.sum(weights, -1, keepdims=True), experts

    def moe(self, y, w):
        weights, experts = self.route(y, w)
        if self.block.moe.dispatch == 'einsum':
            return self.einsum_experts(y, w, weights, experts)
        return self.ragged_experts(y, w, weights, experts)

    def einsum_experts(self, y, w, weights, chosen):
        """One-hot dispatch into a capacity per expert and sequence."""
        at, moe = self.layout, self.block.moe
        b, s, _ = y.shape
        e, k = moe.experts, moe.top_k
        room = int(math.ceil(s * k / e * moe.capacity_factor))
        room = max(4, (room + 3) // 4 * 4)
        flat = jax.nn.one_hot(chosen, e, dtype=jnp.int32).transpose(0, 2, 1, 3).reshape(
            b, k * s, e)
        place = jnp.cumsum(flat, 1) - 1
        place = (place * flat).sum(-1).reshape(b, k, s).transpose(0, 2, 1)
        kept = jnp.where(place < room, weights, 0.).astype(self.dtype)
        combine = jnp.einsum('bsk,bske,bskc->bsec', kept,
                             jax.nn.one_hot(chosen, e, dtype=self.dtype),
                             jax.nn.one_hot(place, room, dtype=self.dtype))
        dispatch = (combine > 0).astype(self.dtype)
        outer = tuple(a for a in (at.batch or ()) if a != 'expert') or None
        combine = checkpoint_name(combine, 'moe_combine')
        dispatch = checkpoint_name(dispatch, 'moe_dispatch')
        x = jnp.einsum('bsec,bsd->becd', dispatch, y)
        if at.expert:
            x = at.constrain(x, outer, at.expert, None, None)
            spec = (outer, at.expert, None, at.tensor)
        else:
            x = at.constrain(x, at.batch, None, None, None)
            spec = (at.batch, None, None, at.tensor)

        def product(form, x, n):
            made = jnp.einsum(form, x, self.cast(w['w' + n]))
            return made + self.cast(w['b' + n])[None, :, None] if moe.bias else made
        gate, up = [checkpoint_name(at.constrain(product('becd,edf->becf', x, n), *spec), name)
                    for n, name in (('g', 'mlp_gate'), ('u', 'mlp_up'))]
        o = product('becf,efd->becd', self.act(moe.kind, gate, up), 'd')
        o = checkpoint_name(at.constrain(o, *(spec[:3] + (None,))), 'moe_out')
        if moe.weight_sum == 'f32':
            return jnp.einsum('bsec,becd->bsd', combine.astype(F32), o.astype(F32)).astype(
                self.dtype)
        return jnp.einsum('bsec,becd->bsd', combine, o)

    def ragged_experts(self, y, w, weights, chosen):
        """Tokens sorted by expert, one grouped product; each device has all experts' weights."""
        at, moe = self.layout, self.block.moe

        def run(y, weights, chosen, w):
            b, s, d = y.shape
            rows, k = b * s, moe.top_k
            flat, e = y.reshape(rows, d), chosen.reshape(rows * k)
            order = jnp.argsort(e)
            back = jnp.argsort(order)
            sizes = jnp.bincount(e, length=moe.experts).astype(jnp.int32)
            x = checkpoint_name(flat[order // k], 'moe_sorted')

            def product(x, n, along):
                made = self.grouped(x, w['w' + n], sizes, along)
                return made + self.cast(w['b' + n])[e[order]] if moe.bias else made
            gate = checkpoint_name(product(x, 'g', 1), 'mlp_gate')
            up = checkpoint_name(product(x, 'u', 1), 'mlp_up')
            o = checkpoint_name(product(self.act(moe.kind, gate, up), 'd', 2), 'moe_out')
            o = o[back].reshape(rows, k, d)
            share = weights.reshape(rows, k)
            if moe.weight_sum == 'f32':
                r = jnp.einsum('tkd,tk->td', o.astype(F32), share.astype(F32)).astype(
                    self.dtype).reshape(b, s, d)
            else:
                r = jnp.einsum('tkd,tk->td', o, share.astype(self.dtype)).reshape(b, s, d)
            return lax.psum(r, 'tensor') if at.tensor else r
        if at.devices == 1:
            return run(y, weights, chosen, w)
        rows = P(at.batch, None, None)
        over = at.fsdp if self.config.precision.fp8_gather else None
        specs = dict(wg=P(None, over, at.tensor), wu=P(None, over, at.tensor),
                     wd=P(None, at.tensor, over))
        if moe.bias:
            specs.update(bg=P(None, at.tensor), bu=P(None, at.tensor), bd=P(None, None))
        given = {n: self.cast(w[n]) for n in specs}
        if moe.bias:  # of what is summed over the axis, each device adds its share
            given['bd'] = given['bd'] / self.config.mesh.tensor
        return jax.shard_map(
            run, mesh=at.mesh, in_specs=(rows, rows, rows, specs), out_specs=rows,
            check_vma=False)(y, weights, chosen, given)

    def feed_forward(self, y, w):
        if not self.block.get('moe'):
            return self.mlp(y, w, 'w', self.block.mlp.kind, ('mlp_gate', 'mlp_up'))
        o = self.moe(y, w)
        if self.block.moe.shared_experts:
            o = o + self.mlp(y, w, 's', self.block.moe.kind, ('shared_gate', 'shared_up'))
        return o

    def __call__(self, w, x):
        at = self.layout
        x = checkpoint_name(x, 'layer_in')
        y = at.constrain(self.norm(x, w, 'ln1'), at.batch, at.seq, None)
        o = self.attend(y, w)
        if self.block.post_norm:
            o = self.norm(o, w, 'ln1p')
        x = x + o
        y = at.constrain(self.norm(x, w, 'ln2'), at.batch, at.seq, None)
        o = checkpoint_name(at.constrain(self.feed_forward(y, w), *at.residual()), 'mlp_down')
        if self.block.post_norm:
            o = self.norm(o, w, 'ln2p')
        return at.constrain(x + o, *at.residual())


class Unit:
    """Several layers that one step of the scan runs and one rematerialisation wraps; they differ
    in their windows alone."""

    def __init__(self, config, block, layout):
        self.block = block
        windows = block.attention.window
        windows = windows if isinstance(windows, list) else [windows] * block.unit
        self.layers = [Layer(config, with_window(block, windows[i % len(windows)]), layout)
                       for i in range(block.unit)]

    def weights(self):
        return {'%s%02d' % (name, i): w for i, layer in enumerate(self.layers)
                for name, w in layer.weights().items()}

    def __call__(self, w, x):
        for i, layer in enumerate(self.layers):
            x = layer({name[:-2]: v for name, v in w.items() if int(name[-2:]) == i}, x)
        return x


def with_window(block, window):
    attention = type(block)({**block.attention, 'window': window})
    return type(block)({**block, 'attention': attention})
