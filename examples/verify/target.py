"""The devices to compile for, made from their description alone: no accelerator is looked for.

JAX reads its environment when it is imported, so prepare() comes before anything that imports it."""
import importlib.metadata
import importlib.util
import os

from config import Machine, Refused

# Chips of a slice and its shape, smallest first: a program on fewer devices takes the first ones.
FLAT = {1: '1x1', 4: '2x2', 8: '2x4', 16: '4x4', 32: '4x8', 64: '8x8', 128: '8x16', 256: '16x16'}
CUBE = {4: '2x2x1', 8: '2x2x2', 16: '2x2x4', 32: '2x4x4', 64: '4x4x4', 128: '4x4x8', 256: '4x8x8',
        512: '8x8x8', 1024: '8x8x16', 2048: '8x16x16', 4096: '16x16x16'}
TPUS = {'tpu-v4': ('v4', CUBE), 'tpu-v5p': ('v5p', CUBE), 'tpu-v5e': ('v5e', FLAT),
        'tpu-v6e': ('v6e', FLAT), 'tpu-v7': ('tpu7x', CUBE)}
CHIP_DEVICES = {'tpu-v7': 2}  # devices of a chip, where it shows as more than one
# Two cores as one device with all of the chip's memory, as its runtime has it; without it the
# compiler takes each for a device of 15.25 GiB.
ONE_DEVICE = {'tpu-v4': dict(chip_config_name='megacore', chips_per_host_bounds=(2, 2, 1),
                             num_slices=1)}

# What XLA:GPU asks about a device: figures of the vendors, in the words of its own description.
NVIDIA = dict(threads_per_block_limit=1024, threads_per_warp=32, shared_memory_per_block=49152,
              threads_per_core_limit=2048, block_dim_limit_x=2147483647, block_dim_limit_y=65535,
              block_dim_limit_z=65535, registers_per_core_limit=65536,
              registers_per_block_limit=65536)
HOPPER = dict(NVIDIA, shared_memory_per_core=233472, core_count=132, fpus_per_core=128,
              l2_cache_size=52428800, clock_rate_ghz=1.98, shared_memory_per_block_optin=232448)
GPUS = {
    'nvidia-a100-80gb': ('cuda', 'a100', 8, 'NVIDIA A100-SXM4-80GB', dict(
        NVIDIA, shared_memory_per_core=167936, core_count=108, fpus_per_core=64,
        memory_bandwidth=2039040000000, l2_cache_size=41943040, clock_rate_ghz=1.41,
        device_memory_size=85100068864, shared_memory_per_block_optin=166912)),
    'nvidia-h100': ('cuda', 'h100', 9, 'NVIDIA H100 80GB HBM3', dict(
        HOPPER, memory_bandwidth=3352320000000, device_memory_size=84978434048)),
    'nvidia-h200': ('cuda', 'h200', 9, 'NVIDIA H200 141GB HBM3e', dict(
        HOPPER, memory_bandwidth=4800000000000, device_memory_size=151397597184)),
    'nvidia-b200': ('cuda', 'b200', 10, 'NVIDIA B200', dict(
        NVIDIA, shared_memory_per_core=233472, core_count=148, fpus_per_core=128,
        memory_bandwidth=7672320000000, l2_cache_size=132644864, clock_rate_ghz=1.965,
        device_memory_size=191514411008, shared_memory_per_block_optin=232448)),
    'amd-mi300x': ('rocm', 'mi300x', 'gfx942', 'AMD Instinct MI300X', dict(
        threads_per_block_limit=1024, threads_per_warp=64, shared_memory_per_block=65536,
        shared_memory_per_core=65536, threads_per_core_limit=2048, core_count=304,
        fpus_per_core=128, block_dim_limit_x=2147483647, block_dim_limit_y=65536,
        block_dim_limit_z=65536, memory_bandwidth=5300000000000, l2_cache_size=4194304,
        clock_rate_ghz=2.1, device_memory_size=206141652992, shared_memory_per_block_optin=65536,
        registers_per_core_limit=65536, registers_per_block_limit=65536)),
}
DEVICES_PER_HOST = 8

PIP = {'tpu': 'pip install "jax[tpu]"', 'cuda': 'pip install "jax[cuda12]"',
       'rocm': 'pip install "jax[rocm]"'}


def platform_of(device):
    if device in TPUS:
        return 'tpu'
    if device in GPUS:
        return GPUS[device][0]
    raise Refused('hardware.device: the reference step is not compiled for %s; allowed: %s' % (
        device, ', '.join(sorted(TPUS) + sorted(GPUS))))


def topology_of(device, count):
    """The name of the smallest set of devices that holds so many."""
    if device in GPUS:
        hosts, each = divmod(count, DEVICES_PER_HOST)
        if hosts and each:
            raise Refused('hardware.count: %d devices are no whole hosts of %d' % (
                count, DEVICES_PER_HOST))
        return '%s:1x%dx%d' % (GPUS[device][1], hosts or 1, DEVICES_PER_HOST if hosts else each)
    chip, shapes = TPUS[device]
    each = CHIP_DEVICES.get(device, 1)
    for chips in sorted(shapes):
        if chips * each >= count:
            return '%s:%s' % (chip, shapes[chips])
    raise Refused('hardware.count: %d is more than a slice of %s has; allowed: up to %d' % (
        count, device, max(shapes) * each))


def prepare(platform):
    """The environment of the compiler, before JAX is imported. Only the CPU backend starts."""
    e = os.environ
    e['JAX_PLATFORMS'] = 'cpu'
    e.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    if platform == 'tpu':
        e.setdefault('TPU_SKIP_MDS_QUERY', '1')
        e.setdefault('TPU_ACCELERATOR_TYPE', 'v5p-8')
        e.setdefault('TPU_WORKER_HOSTNAMES', 'localhost')
        e.setdefault('TPU_STDERR_LOG_LEVEL', '3')
        e.setdefault('TPU_MIN_LOG_LEVEL', '3')
        e.setdefault('ALLOW_MULTIPLE_LIBTPU_LOAD', 'true')
        return
    e['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'
    # Without a device nothing can be tried out: the compiler's own choice of kernels.
    e['XLA_FLAGS'] = ('--xla_gpu_autotune_level=0 ' + e.get('XLA_FLAGS', '')).strip()


def find_plugin(prefix):
    """The newest of the plugins jax_plugins.xla_cuda12, xla_cuda13 ...; None: there is none."""
    spec = importlib.util.find_spec('jax_plugins')
    names = set()
    for folder in (spec.submodule_search_locations if spec else ()):
        names |= {n for n in os.listdir(folder) if n.startswith(prefix)}
    return max(names, default=None)


def check_installed(platform):
    """What cannot be imported is one sentence with what installs it."""
    def lacking(what):
        return Machine('%s is missing; install it with: %s' % (what, PIP[platform]))
    for module in ('jax', 'jaxlib', 'numpy'):
        if importlib.util.find_spec(module) is None:
            raise lacking('JAX' if module.startswith('jax') else module)
    if platform == 'tpu':
        if importlib.util.find_spec('libtpu') is None:
            raise lacking('libtpu')
    elif find_plugin('xla_' + platform) is None:
        raise lacking("JAX's plugin for " + ('CUDA' if platform == 'cuda' else 'ROCm'))


def versions(platform):
    wanted = ['jax', 'jaxlib']
    if platform == 'tpu':
        wanted.append('libtpu')
    else:
        kind = find_plugin('xla_' + platform)[len('xla_'):]
        wanted += ['jax-%s-plugin' % kind, 'jax-%s-pjrt' % kind]
    found = {}
    for name in wanted:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def compiler_of(platform, found):
    """The compiler's name as people say it: 'libtpu 0.0.51'."""
    if platform == 'tpu':
        return 'libtpu ' + found.get('libtpu', '?')
    name = next((n for n in found if n.endswith('-pjrt')), 'jaxlib')
    return '%s %s' % (name, found.get(name, '?'))


def describe_gpu(device):
    platform, _, arch, name, figures = GPUS[device]
    lines = ['%s: %s' % item for item in figures.items()]
    if platform == 'cuda':
        lines.append('cuda_compute_capability { major: %d minor: 0 }' % arch)
        rest = 'platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 patch: 0 } ' \
               'runtime_version { major: 12 minor: 8 patch: 0 }'
    else:
        lines.append('rocm_compute_capability { gcn_arch_name: "%s" }' % arch)
        rest = 'platform_name: "ROCM" runtime_version { major: 7 minor: 0 patch: 0 } ' \
               'dnn_version_info { major: 3 minor: 5 }'
    return 'gpu_device_info { %s } %s device_description_str: "%s"' % (' '.join(lines), rest, name)


def register_rocm():
    """JAX registers the plugin only where it sees AMD devices: here it is registered by hand."""
    from jax._src import xla_bridge
    from jaxlib import xla_client
    plugin = find_plugin('xla_rocm')
    module = __import__('jax_plugins.' + plugin, fromlist=['x'])
    options = xla_client.generate_pjrt_gpu_plugin_options()
    options['platform_name'] = 'ROCM'
    library = os.path.join(os.path.dirname(module.__file__), 'xla_rocm_plugin.so')
    xla_bridge.register_plugin('rocm', priority=500, library_path=library, options=options)


def tell_capability(arch):
    """JAX asks the GPU of this machine whether cuDNN has wide heads; it is the target's to say."""
    try:
        from jax._src.cudnn import fused_attention_stablehlo as cudnn
    except ImportError:
        return
    cudnn.check_compute_capability = lambda wanted: (
        (arch, 0) >= tuple(int(x) for x in wanted.split('.')))


def load_devices(device, count, topology):
    """The first `count` devices of the topology, as the compiler describes them."""
    from jax.experimental import topologies
    platform = platform_of(device)
    try:
        if platform == 'tpu':
            found = topologies.get_topology_desc(topology, 'tpu', **ONE_DEVICE.get(device, {}))
        else:
            if platform == 'rocm':
                register_rocm()
            else:
                tell_capability(GPUS[device][2])
            found = topologies.get_topology_desc(
                platform=platform, target_config=describe_gpu(device),
                topology=topology.split(':')[1])
    except Exception as e:  # the plugin's own words: a library that is missing, a held lock
        raise Machine('no devices of %s: %s' % (topology, ' '.join(str(e).split())[:400])) from e
    devices = list(found.devices)
    if len(devices) < count:
        raise Machine('%s has %d devices, %d are wanted' % (topology, len(devices), count))
    return devices[:count]
