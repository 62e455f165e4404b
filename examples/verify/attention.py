"""How fast the fused attention of the user's own torch or JAX is, forward and backward.

    python3 attention.py < question.json

reads {"framework": "torch" | "jax", "sequences": [512, ...], "width": 128, "heads": 16,
"tokens": 16384, "seconds": 30} and prints one line of JSON:
    {"by": "torch 2.9.0, scaled_dot_product_attention", "device": "NVIDIA H100 80GB HBM3",
     "forward": [[512, 3.1e14], ...], "backward": [[512, 2.2e14], ...]}
in operations a second, of which only those that a causal mask leaves are counted; backward is
forward and backward together less forward. With status 3, {"error": "a sentence"}: the framework
is missing, or has no fused kernel here; two products without one are not measured in its place."""
import json
import sys
import time


class Missing(Exception):
    pass


def operations(batch, heads, seq, width):
    return 4. * batch * heads * seq * seq * width / 2


class Torch:
    def __init__(self):
        try:
            import torch
        except ImportError as e:
            raise Missing('torch cannot be imported: %s' % e) from e
        self.torch = torch
        gpu = torch.cuda.is_available()
        self.place = 'cuda' if gpu else 'cpu'
        self.device = torch.cuda.get_device_name() if gpu else 'cpu'
        self.by = 'torch %s, scaled_dot_product_attention' % torch.__version__

    def kernels(self):
        """Those that keep no scores in memory."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        names = ('FLASH_ATTENTION', 'CUDNN_ATTENTION', 'EFFICIENT_ATTENTION')
        return sdpa_kernel([getattr(SDPBackend, n) for n in names if hasattr(SDPBackend, n)])

    def make(self, batch, heads, seq, width):
        torch = self.torch
        torch.manual_seed(1)

        def tensor():
            return torch.randn(batch, heads, seq, width, dtype=torch.bfloat16, device=self.place,
                               requires_grad=True)
        q, k, v, g = tensor(), tensor(), tensor(), tensor().detach()
        run = torch.nn.functional.scaled_dot_product_attention

        def forward():
            with torch.no_grad(), self.kernels():
                run(q, k, v, is_causal=True)

        def both():
            with self.kernels():
                torch.autograd.grad(run(q, k, v, is_causal=True), (q, k, v), g)
        return forward, both

    def wait(self):
        if self.place == 'cuda':
            self.torch.cuda.synchronize()


class Jax:
    def __init__(self):
        try:
            import jax
        except ImportError as e:
            raise Missing('jax cannot be imported: %s' % e) from e
        self.jax, self.last = jax, None
        self.device = jax.devices()[0].device_kind
        self.by = 'jax %s, cuDNN by dot_product_attention' % jax.__version__
        if jax.devices()[0].platform != 'gpu':
            raise Missing('jax has a fused attention on GPUs alone; its first device is %s'
                          % self.device)

    def make(self, batch, heads, seq, width):
        jax = self.jax
        keys = jax.random.split(jax.random.key(1), 4)
        q, k, v, g = (jax.random.normal(key, (batch, seq, heads, width), jax.numpy.bfloat16)
                      for key in keys)

        def run(q, k, v):
            return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation='cudnn')
        fast = jax.jit(run)
        slow = jax.jit(lambda q, k, v, g: jax.vjp(run, q, k, v)[1](g))

        def forward():
            self.last = fast(q, k, v)

        def both():
            self.last = slow(q, k, v, g)
        return forward, both

    def wait(self):
        self.jax.block_until_ready(self.last)


def seconds_of(work, wait, share):
    """Of one call: the median of five rows that fill the share."""
    for _ in range(2):
        work()
    wait()
    begin = time.monotonic()
    work()
    wait()
    once = max(time.monotonic() - begin, 1e-6)
    repeats = max(1, min(1000, int(share / 5 / once)))
    rows = []
    for _ in range(5):
        begin = time.monotonic()
        for _ in range(repeats):
            work()
        wait()
        rows.append((time.monotonic() - begin) / repeats)
    return sorted(rows)[2]


def measure(q):
    framework = {'torch': Torch, 'jax': Jax}[q['framework']]()
    share = q['seconds'] / (2. * len(q['sequences']))
    forward, backward = [], []
    end = time.monotonic() + q['seconds']
    for seq in q['sequences']:
        if time.monotonic() > end:
            break
        batch = max(1, q['tokens'] // seq)
        try:
            f, both = framework.make(batch, q['heads'], seq, q['width'])
            alone = seconds_of(f, framework.wait, share)
            together = seconds_of(both, framework.wait, share)
        except Exception as e:
            if not forward:
                raise Missing('no fused kernel ran: ' + ' '.join(str(e).split())[:300]) from e
            break
        work = operations(batch, q['heads'], seq, q['width'])
        forward.append([seq, work / alone])
        # Five products backward, two forward; the scores are made again.
        backward.append([seq, 2.5 * work / max(together - alone, together / 10)])
    return dict(by=framework.by, device=framework.device, forward=forward, backward=backward)


def main():
    try:
        answer, status = measure(json.load(sys.stdin)), 0
    except Missing as e:
        answer, status = {'error': str(e)}, 3
    except Exception as e:
        answer, status = {'error': '%s: %s' % (type(e).__name__,
                                               ' '.join(str(e).split())[:300])}, 3
    print(json.dumps(answer))
    return status


if __name__ == '__main__':
    sys.exit(main())
