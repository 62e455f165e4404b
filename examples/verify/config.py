"""The configuration that hbmsim prints (every key present), and what this program refuses of it.

A refusal is one sentence that names the key: better no figure than that of another program."""

AXES = ('pipeline', 'data', 'fsdp', 'sequence', 'expert', 'tensor')  # outermost first


class Refused(Exception):
    """The configuration asks for what the reference step does not have."""


class Machine(Exception):
    """Something is missing or failed here; the sentence says what, and how to get it."""


class Keys(dict):
    """A map of the configuration whose keys are read as attributes."""

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise Refused('%s: is not in the configuration; print it with hbmsim' % key) from None


def tree(value):
    if isinstance(value, dict):
        return Keys((k, tree(v)) for k, v in value.items())
    if isinstance(value, list):
        return [tree(v) for v in value]
    return value


def tensor_names(block):
    """The names that a policy may keep: those that the layer gives to its tensors."""
    names = ['layer_in', 'q', 'k', 'v', 'attn_ctx', 'attn_out', 'mlp_gate', 'mlp_up', 'mlp_down']
    if block.attention.kind == 'mla':
        names += ['mla_q', 'mla_kv']
    moe = block.get('moe')
    if not moe:
        return names + ['mlp_act']
    if moe.shared_experts:
        names += ['shared_gate', 'shared_up', 'mlp_act']
    return names + {'einsum': ['moe_dispatch', 'moe_combine', 'moe_out'],
                    'ragged': ['moe_sorted', 'moe_out']}.get(moe.dispatch, [])


def only(path, section, **allowed):
    """Each key of the section has one of the values that the program knows."""
    for key, values in allowed.items():
        values = values if isinstance(values, tuple) else (values,)
        if section[key] not in values:
            raise Refused('%s.%s: %s is not in the reference step; allowed: %s (--set %s.%s=%s)' % (
                path, key, shown(section[key]), ', '.join(map(shown, values)), path, key,
                shown(values[-1])))


def shown(value):
    return str(value).lower() if isinstance(value, (bool, type(None))) else str(value)


def check_attention(path, a, platform):
    kernels = {'tpu': ('flash', 'naive'), 'cuda': ('flash', 'naive', 'blocked'),
               'rocm': ('naive', 'blocked')}[platform]
    # JAX's call of cuDNN's kernel has one width for keys and values, and no sinks.
    if platform == 'cuda' and (a.kind == 'mla' or a.sinks):
        kernels = kernels[1:]
    if a.kind != 'none':
        only(path, a, kernel=kernels)
    if a.kind == 'mla':
        only(path, a, bias=False, qk_norm=False)
    only(path, a, softmax=('f32', 'bf16'), dropout=0, fused_qkv=False, flash='splash',
         fused_backward=False, qk_norm=(False, True, 'l2'))
    if platform != 'tpu' and a.kernel == 'flash':
        only(path, a, softcap=0)
    window = any(a.window) if isinstance(a.window, list) else a.window
    if a.mask != 'causal' and (window or (a.kind != 'none' and a.kernel == 'blocked')):
        only(path, a, mask='causal')
    if platform == 'tpu' and a.kernel == 'flash' and a.kind != 'none':
        only(path, a, mask='causal')


def check_block(i, b, platform, fp8):
    path = 'model.blocks[%d]' % i
    only(path, b, pipelined=True, dropout=0)
    check_attention(path + '.attention', b.attention, platform)
    if b.get('moe') and fp8:
        only(path + '.moe', b.moe, dispatch='ragged')
    if b.get('moe'):
        only(path + '.moe', b.moe, kind=('swiglu', 'geglu'), dispatch=('ragged', 'einsum'),
             router_dtype=('f32', 'bf16'), weight_sum=('compute', 'f32'), pad_to_capacity=False,
             act_dtype='compute', buffer_factor=0)
        if b.moe.shared_experts:
            only(path + '.moe', b.moe, bias=False)
    else:
        only(path + '.mlp', b.mlp, fused=False, act_dtype='compute')


def check_policy(path, policy, block):
    known = tensor_names(block)
    if policy.policy not in ('names', 'full') and policy.offload:
        raise Refused('%s.offload: with policy %s it is not in the reference step; allowed: names'
                      % (path, policy.policy))
    for key in ('save', 'offload'):
        for name in policy[key]:
            if name not in known:
                raise Refused('%s.%s: %s is no tensor of the reference layer; allowed: %s' % (
                    path, key, name, ', '.join(known)))


def check_rest(c, platform):
    if c.model.mtp and c.mesh.pipeline > 1:
        raise Refused('model.mtp: depths beside a pipeline are not in the reference step; allowed: 0')
    if 0 < c.model.positions < c.batch.seq:
        raise Refused('model.positions: %d learnt positions, and sequences of %d tokens; allowed: '
                      '0, or at least batch.seq' % (c.model.positions, c.batch.seq))
    only('precision', c.precision, params=('f32', 'bf16'), compute=('f32', 'bf16'),
         fp8=('none', 'tensorwise', 'rowwise'), fp8_gather=(False, True), fp8_params=False)
    if c.precision.fp8_gather:
        only('precision', c.precision, fp8='tensorwise')
    only('optimizer', c.optimizer, in_backward=False, others='same')
    for moment in c.optimizer.moments:
        if moment not in ('f32', 'bf16'):
            raise Refused('optimizer.moments: %s is not in the reference step; allowed: f32, bf16'
                          % moment)
    only('sharding', c.sharding, optimizer_over_data=False, grads_over_data=False,
         reshard_after_forward=True, states_over_sequence=False, dense_over_expert=False,
         expert_tensor=c.mesh.tensor, sequence_kind='ring', norms=('replicated', 'fsdp'),
         residual_split='sequence', sequence_balance=False)
    only('stack', c.stack, axis=0)
    only('remat', c.remat, every=1)
    if c.remat.modules:
        raise Refused('remat.modules: parts of a layer are not rematerialised alone in the '
                      'reference step; allowed: []')
    only('loss', c.loss, softmax='f32', kernel='eager', chunk_over='sequence')
    if c.compiler != {'tpu': 'xla-tpu'}.get(platform, 'xla-gpu'):
        raise Refused('compiler: %s is not what JAX compiles with for %s' % (
            c.compiler, c.hardware.device))
    if platform != 'tpu':
        check_host(c)


def check_divided(c, platform):
    """JAX splits a dimension evenly or not at all."""
    ways = c.mesh.tensor if c.sharding.vocab_over_tensor else 1
    if c.model.vocab % ways:
        raise Refused('model.vocab: %d words are not split evenly over tensor %d, as JAX wants it; '
                      'allowed: a multiple of it (programs pad their tables)' % (c.model.vocab, ways))
    for i, b in enumerate(c.model.blocks):
        a = b.attention
        if platform == 'cuda' and a.kernel == 'flash' and a.kv_heads % c.mesh.tensor:
            raise Refused('model.blocks[%d].attention.kv_heads: %d are not split evenly over tensor '
                          "%d, as JAX's call of cuDNN wants it; allowed: a multiple of it, or "
                          'kernel blocked or naive' % (i, a.kv_heads, c.mesh.tensor))


def check_host(c):
    """Without a device XLA:GPU counts arguments in pinned host memory as the device's."""
    why = ': pinned_host cannot be judged without a device on GPUs (the compiler counts host ' \
          'arguments as device memory); allowed: '
    if c.optimizer.offload == 'pinned_host':
        raise Refused('optimizer.offload' + why + 'none')
    if c.optimizer.ema == 'pinned_host':
        raise Refused('optimizer.ema' + why + 'none, device')
    if c.optimizer.params_offload == 'pinned_host':
        raise Refused('optimizer.params_offload' + why + 'none')


def check_pipeline(c):
    if c.mesh.pipeline == 1:
        return
    only('pipeline', c.pipeline, repeats=1, schedule='spmd', rank='max', layers='even',
         gather='iteration', delay=False, unroll=False)
    if len(c.model.blocks) > 1:
        raise Refused('model.blocks: a pipeline of several blocks is not in the reference step; '
                      'allowed: one block')
    if c.stack.form == 'nested':
        raise Refused('stack.form: nested inside a pipeline is not in the reference step; '
                      'allowed: scan, loop')


def read(root, platform):
    """The checked configuration; each block carries its own `remat`."""
    c = tree(root)
    own = c.remat.get('per_block') or {}
    for i, b in enumerate(c.model.blocks):
        check_block(i, b, platform, c.precision.fp8 != 'none')
        b['remat'] = Keys({**{k: c.remat[k] for k in ('policy', 'save', 'offload')},
                           **own.get(b.name, {})})
        check_policy('remat.per_block.' + b.name if b.name in own else 'remat', b.remat, b)
    check_rest(c, platform)
    check_divided(c, platform)
    check_pipeline(c)
    return c
