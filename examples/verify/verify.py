"""A reference train step, compiled ahead of time by the user's own JAX: no accelerator needed.

    python3 verify.py < config.json

reads a whole configuration (what `hbmsim verify` sends, `hbmsim plan --json` has under "plan")
and prints one line of JSON: what the compiler says that the program takes of a device's memory.
    {"compiler": "libtpu 0.0.51", "device": "tpu-v5e", "devices": 64, "topology": "v5e:8x8",
     "argument_bytes": ..., "output_bytes": ..., "alias_bytes": ..., "temp_bytes": ...,
     "host_bytes": ..., "total_bytes": ..., "versions": {...}}
or, with status 2 (the configuration asks for what this program does not have) or 3 (something is
missing here, or the compiler failed), {"error": "a sentence"}."""
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time

import assignment
import config as configuration
import target
from config import Machine, Refused

UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}


class Answer:
    """Printed once, by whoever comes first: the compiler's end, or the watcher of its files."""

    def __init__(self, out, about, folder):
        self.out, self.about, self.folder = out, about, folder
        self.lock = threading.Lock()

    def end(self, sums, status=0):
        with self.lock:
            shutil.rmtree(self.folder, ignore_errors=True)
            print_line(self.out, {**self.about, **sums} if status == 0 else sums)
            os._exit(status)  # the compiler's threads are not waited for


def print_line(out, what):
    out.write(json.dumps(what) + '\n')
    out.flush()


def with_total(sums):
    return {**sums, 'total_bytes': assignment.total(sums)}


def watch(answer):
    while True:
        time.sleep(assignment.WAIT_S)
        path = assignment.find(answer.folder)
        if path:
            answer.end(with_total(assignment.read(path)))


def wanted_bytes(text):
    """Of the compiler's refusal: 'Used 17.66G of 15.75G hbm'."""
    found = re.search(r'Used ([\d.]+)([KMGT]?) of [\d.]+[KMGT]? hbm', text)
    return int(float(found[1]) * UNITS[found[2]]) if found else None


def compile_step(step, answer):
    f, shapes = step.make()
    lowered = f.lower(*shapes)
    threading.Thread(target=watch, args=(answer,), daemon=True).start()
    try:
        compiled = lowered.compile(compiler_options={'xla_dump_to': answer.folder})
        sums = with_total(assignment.of_analysis(compiled.memory_analysis()))
    except Exception as e:
        path = 'RESOURCE_EXHAUSTED' in str(e) and assignment.find(answer.folder, ended=True)
        if path:
            answer.end(with_total(assignment.read(path)))
        wanted = wanted_bytes(str(e))
        if wanted is None:
            raise Machine('the compiler failed: ' + ' '.join(str(e).split())[:400]) from e
        sums = dict(total_bytes=wanted)
    answer.end(sums)


def answer_of(root, out, folder):
    if not isinstance(root, dict) or 'hardware' not in root:
        raise Refused('hardware: is not in the configuration; print it with hbmsim')
    device, count = root['hardware']['device'], root['hardware']['count']
    platform = target.platform_of(device)
    keys = configuration.read(root, platform)
    topology = target.topology_of(device, count)
    target.check_installed(platform)
    target.prepare(platform)
    devices = target.load_devices(device, count, topology)
    versions = target.versions(platform)
    about = dict(compiler=target.compiler_of(platform, versions), device=device, devices=count,
                 topology=topology, versions=versions)
    from step import Step  # imports JAX
    compile_step(Step(keys, devices), Answer(out, about, folder))


def clean_when_stopped(folder):
    """A request to end is seen by a thread: the main one is inside the compiler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def wait():
        signal.sigwait({signal.SIGTERM})
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(3)
    threading.Thread(target=wait, daemon=True).start()


def main(answer=answer_of):
    # Libraries print on standard output: it is ours alone.
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    folder = tempfile.mkdtemp(prefix='hbmsim-verify-')
    clean_when_stopped(folder)
    try:
        answer(json.load(sys.stdin), out, folder)
        status = 0
    except (Refused, Machine) as e:
        print_line(out, {'error': str(e)})
        status = 2 if isinstance(e, Refused) else 3
    except Exception as e:
        print_line(out, {'error': '%s: %s' % (type(e).__name__, ' '.join(str(e).split())[:400])})
        status = 3
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


if __name__ == '__main__':
    main()
