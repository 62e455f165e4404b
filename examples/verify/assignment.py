"""The compiler's own sums, read from the buffer assignment that it writes.

XLA writes it (--xla_dump_to) before the long part of its work, the generation of code, which
changes no buffer: the compiler is stopped there. The sums are those of memory_analysis()."""
import glob
import os
import re
import time

ALLOCATION = re.compile(r'^allocation (\d+): size (\d+)(?:, color (\d+))?(.*)$')
DEVICE, HOST = 0, 5  # memory spaces ("colors"); others are on the chip
WAIT_S = 0.1


def is_settled(path):
    """Nothing was added to the file for three waits."""
    size = -1
    for _ in range(30):
        now = os.path.getsize(path)
        if now == size:
            return True
        size = now
        time.sleep(3 * WAIT_S)
    return False


def find(folder, ended=False):
    """The finished buffer assignment of the step, or None as long as there is none. ended: of a
    compiler that gave up: on TPUs one that found no room ends with its last assignment."""
    reports = glob.glob(folder + '/*jit_*step*after_optimizations-memory-usage-report.txt')
    after = glob.glob(folder + '/*jit_*step*after_buffer_assignment.txt') + \
        glob.glob(folder + '/*.ll')
    if not reports or not (after or ended or is_gpu(folder)):
        return None
    path = reports[0].replace('-memory-usage-report.txt', '-buffer-assignment.txt')
    return path if os.path.exists(path) and is_settled(path) else None


def is_gpu(folder):
    return bool(glob.glob(folder + '/*gpu_after_optimizations*'))


def read(path):
    """argument, output, alias, temp and host bytes of one device."""
    sums = dict(argument_bytes=0, output_bytes=0, alias_bytes=0, temp_bytes=0)
    host = dict(sums)
    with open(path, errors='replace') as lines:
        for line in lines:
            if line.startswith('allocation '):
                add(ALLOCATION.match(line), sums, host)
            elif line.strip() and not line.startswith((' ', 'BufferAssignment')):
                break
    if not sums['argument_bytes']:
        raise ValueError('no arguments in ' + os.path.basename(path))
    sums['host_bytes'] = total(host)
    return sums


def add(match, sums, host):
    if not match:
        return
    size, color, what = int(match[2]), int(match[3] or 0), match[4]
    if color not in (DEVICE, HOST) or 'thread-local' in what:
        return
    into = sums if color == DEVICE else host
    if 'parameter' in what and 'shape |' in what:
        into['argument_bytes'] += size
        if 'maybe-live-out' in what:
            into['alias_bytes'] += size
            into['output_bytes'] += size
    elif 'output shape' in what or 'maybe-live-out' in what:
        into['output_bytes'] += size
    elif 'constant' not in what:
        into['temp_bytes'] += size


def of_analysis(m):
    """The same of a compilation that ran to its end."""
    host = dict(argument_bytes=m.host_argument_size_in_bytes,
                output_bytes=m.host_output_size_in_bytes,
                alias_bytes=m.host_alias_size_in_bytes, temp_bytes=m.host_temp_size_in_bytes)
    return dict(argument_bytes=m.argument_size_in_bytes, output_bytes=m.output_size_in_bytes,
                alias_bytes=m.alias_size_in_bytes, temp_bytes=m.temp_size_in_bytes,
                host_bytes=total(host))


def total(sums):
    return sums['argument_bytes'] + sums['output_bytes'] - sums['alias_bytes'] + sums['temp_bytes']
