"""A train step of plain PyTorch on the device that it shows, as torchtitan's model has it: bf16
parameters, fused norms and AdamW, flash attention, checkpointed layers or none.

    python3 run_torch.py < config.json

reads a whole configuration of one device (what `hbmsim calibrate --step --with-torch` sends) and
prints one line of JSON, as run_step.py does. peak_by is "device" where the allocator counts
(max_memory_allocated); on a processor the tensors that are alive are counted, by "requests"."""
import importlib.util
import time
import weakref

from config import Machine, Refused, tree
from run_step import LEAST_SECONDS, LEAST_STEPS, MOST_STEPS
from verify import main, print_line


def check(keys):
    """The step has this and nothing else."""
    block, = keys.model.blocks if len(keys.model.blocks) == 1 else [None]
    wanted = {
        'hardware.count': keys.hardware.count == 1,
        'model.blocks: one kind': block is not None,
        'attention.kernel: flash, kind: gqa': block and block.attention.kernel == 'flash' and
        block.attention.kind == 'gqa' and not block.attention.bias and not block.attention.qk_norm,
        'mlp.kind: swiglu': block and 'mlp' in block and block.mlp.kind == 'swiglu' and not block.mlp.bias,
        'norm: rmsnorm': block and block.norm == 'rmsnorm' and not block.post_norm,
        'remat.policy: none or full': keys.remat.policy in ('none', 'full'),
        'optimizer.name: adamw': keys.optimizer.name == 'adamw' and not keys.optimizer.clip,
        'precision.params: bf16': keys.precision.params == keys.precision.compute == 'bf16',
        'loss.chunks: 1, kernel: eager': keys.loss.chunks == 1 and keys.loss.kernel == 'eager',
        'batch.accumulate: 1': keys.batch.accumulate == 1,
    }
    for key, has in wanted.items():
        if not has:
            raise Refused('%s: the PyTorch step has nothing else' % key)
    return block


def make_model(torch, keys, block):
    nn, functional = torch.nn, torch.nn.functional
    width, heads, head = keys.model.d_model, block.attention.heads, block.attention.head_dim
    kv = block.attention.kv_heads

    def turn(x, angles):
        """Rotary positions, in complex numbers."""
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * angles[None, :, None, :]).flatten(3).type_as(x)

    def linear(i, o):
        return nn.Linear(i, o, bias=False)

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return functional.rms_norm(x, (width,), self.weight, 1e-5)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k, self.v = linear(width, heads * head), linear(width, kv * head), linear(width, kv * head)
            self.o = linear(heads * head, width)
            self.gate, self.up = linear(width, block.mlp.d_ff), linear(width, block.mlp.d_ff)
            self.down = linear(block.mlp.d_ff, width)

        def attend(self, x, angles):
            b, s, _ = x.shape
            q, k, v = (w(x).view(b, s, -1, head) for w in (self.q, self.k, self.v))
            q, k = turn(q, angles), turn(k, angles)
            if kv != heads:
                k, v = (t.repeat_interleave(heads // kv, 2) for t in (k, v))
            y = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
            return self.o(y.transpose(1, 2).contiguous().view(b, s, -1))

        def forward(self, x, angles):
            x = x + self.attend(self.norm1(x), angles)
            y = self.norm2(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(keys.model.vocab, width)
            self.layers = nn.ModuleList(Layer() for _ in range(block.repeat))
            self.norm, self.head = Norm(), linear(width, keys.model.vocab)

        def forward(self, tokens, angles):
            x = self.embedding(tokens)
            for layer in self.layers:
                if keys.remat.policy == 'full':
                    x = torch.utils.checkpoint.checkpoint(layer, x, angles, use_reentrant=False,
                                                          preserve_rng_state=False)
                else:
                    x = layer(x, angles)
            return self.head(self.norm(x))
    return Model()


def make_step(torch, keys, block, device):
    model = make_model(torch, keys, block).to(device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    shape = (keys.batch['global'], keys.batch.seq)
    rate = 10000.0 ** (-torch.arange(0, block.attention.head_dim, 2, device=device) / block.attention.head_dim)
    turns = torch.outer(torch.arange(keys.batch.seq, device=device), rate)
    angles = torch.polar(torch.ones_like(turns), turns)

    def step():
        tokens = torch.randint(0, keys.model.vocab, shape, device=device)
        labels = torch.randint(0, keys.model.vocab, shape, device=device)
        logits = model(tokens, angles)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def count_requests(torch, make):
    """Most bytes of tensors that are alive at once in a step, where no allocator counts."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter
    from torch.utils.weak import WeakIdKeyDictionary

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen, self.held, self.now, self.most = WeakIdKeyDictionary(), {}, 0, 0

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            result = op(*args, **(kwargs or {}))
            for tensor in tree_iter(result):
                if isinstance(tensor, torch.Tensor):
                    self.add(tensor.untyped_storage())
            return result

        def add(self, storage):
            if storage in self.seen:
                return
            self.seen[storage] = number = len(self.held)
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            self.held[number] = weakref.ref(storage, lambda _, n=storage.nbytes(): self.drop(n))

        def drop(self, size):
            self.now -= size

    with Count() as count:
        step = make()
        step()
        step()
    return step, count.most


def run_steps(torch, step, wait):
    """Seconds of a step, and how many were timed."""
    wait()
    steps, begin = 0, time.monotonic()
    while True:
        step()
        wait()
        steps += 1
        took = time.monotonic() - begin
        if steps >= LEAST_STEPS and (took >= LEAST_SECONDS or steps >= MOST_STEPS):
            return took / steps, steps


def measure(torch, keys, block):
    def make():
        return make_step(torch, keys, block, 'cuda' if gpu else 'cpu')
    gpu = torch.cuda.is_available()
    if not gpu:
        step, peak = count_requests(torch, make)
        seconds, steps = run_steps(torch, step, lambda: None)
        return dict(peak_bytes=peak, peak_by='requests', step_seconds=seconds, steps=steps)
    torch.cuda.reset_peak_memory_stats()
    step = make()
    step()
    step()
    seconds, steps = run_steps(torch, step, torch.cuda.synchronize)
    return dict(peak_bytes=torch.cuda.max_memory_allocated(), peak_by='device', step_seconds=seconds,
                reserved_bytes=torch.cuda.max_memory_reserved(), steps=steps)


def answer_of(root, out, folder):
    if importlib.util.find_spec('torch') is None:
        raise Machine('PyTorch is missing; install it for this device: pip install torch')
    import torch
    import torch.utils.checkpoint
    keys = tree(root)
    block = check(keys)
    gpu = torch.cuda.is_available()
    about = dict(by='torch ' + torch.__version__, platform='gpu' if gpu else 'cpu',
                 device=torch.cuda.get_device_name() if gpu else 'processor',
                 versions={'torch': torch.__version__})
    print_line(out, {**about, **measure(torch, keys, block)})


if __name__ == '__main__':
    main(answer_of)
