"""A llama-like step small enough for any machine; toy.yaml describes it. See jax_record.py.
On a CPU its figures show the form of a record, not what an accelerator would take."""
import jax
import jax.numpy as jnp

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FF, VOCAB, BATCH, SEQ = 2, 128, 4, 2, 32, 352, 512, 4, 256


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def layer(x, w):
    h = norm(x, w["n1"])
    q = (h @ w["q"]).reshape(*h.shape[:2], HEADS, HEAD_DIM)
    k = (h @ w["k"]).reshape(*h.shape[:2], KV_HEADS, HEAD_DIM)
    v = (h @ w["v"]).reshape(*h.shape[:2], KV_HEADS, HEAD_DIM)
    context = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + context.reshape(*h.shape[:2], -1) @ w["o"]
    h = norm(x, w["n2"])
    return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]


def loss(params, tokens):
    x = params["embed"][tokens]
    x, _ = jax.lax.scan(lambda x, w: (jax.checkpoint(layer)(x, w), None), x, params["layers"])
    logits = norm(x, params["norm"]) @ params["head"]
    logits = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logits, jnp.roll(tokens, -1, 1)[..., None], -1))


def step(state, tokens):
    params, mu, nu = state
    grads = jax.grad(loss)(params, tokens)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, grads)
    nu = jax.tree.map(lambda n, g: 0.95 * n + 0.05 * g * g, nu, grads)
    params = jax.tree.map(lambda p, m, n: p - 1e-3 * m / (jnp.sqrt(n) + 1e-8), params, mu, nu)
    return params, mu, nu


def shapes():
    kv = KV_HEADS * HEAD_DIM
    layers = {"n1": (WIDTH,), "n2": (WIDTH,), "q": (WIDTH, HEADS * HEAD_DIM), "k": (WIDTH, kv),
              "v": (WIDTH, kv), "o": (HEADS * HEAD_DIM, WIDTH), "gate": (WIDTH, FF),
              "up": (WIDTH, FF), "down": (FF, WIDTH)}
    layers = {name: (LAYERS, *shape) for name, shape in layers.items()}
    return {"embed": (VOCAB, WIDTH), "layers": layers, "norm": (WIDTH,), "head": (WIDTH, VOCAB)}


def make():
    params = jax.tree.map(lambda s: jnp.full(s, 0.01, jnp.float32), shapes(),
                          is_leaf=lambda s: isinstance(s, tuple))
    zeros = jax.tree.map(jnp.zeros_like, params)
    tokens = jnp.arange(BATCH * SEQ, dtype=jnp.int32).reshape(BATCH, SEQ) % VOCAB
    step_ = lambda state, tokens: (step(state, tokens),)
    return jax.jit(step_, donate_argnums=0), ((params, zeros, jax.tree.map(jnp.copy, zeros)), tokens)


def make_too_large():
    """The same for a TPU v5e that need not be there (libtpu must), with far too many sequences."""
    from jax.experimental import topologies
    device = topologies.get_topology_desc("v5e:2x2", "tpu").devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    abstract = lambda s: jax.ShapeDtypeStruct(s, jnp.float32, sharding=sharding)
    params = jax.tree.map(abstract, shapes(), is_leaf=lambda s: isinstance(s, tuple))
    tokens = jax.ShapeDtypeStruct((1 << 16, SEQ), jnp.int32, sharding=sharding)
    return jax.jit(step, donate_argnums=0), ((params, params, params), tokens)
