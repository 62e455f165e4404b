"""The same answer from MaxText's own program: its train_compile, run in a checkout with settings.

    python3 run_maxtext.py DIR KEY=VALUE... < config.json

The configuration says for which devices, and what is to be compared; the settings are what
`hbmsim plan --emit maxtext` prints of it. MaxText compiles for TPUs alone here."""
import os
import runpy
import sys
import threading

import assignment
import target
import verify
from config import Machine, Refused

# Where the program has been, newest first: module, its folder, its base configuration.
PLACES = (('maxtext.trainers.pre_train.train_compile', 'src', 'src/maxtext/configs/base.yml'),
          ('MaxText.train_compile', 'src', 'src/MaxText/configs/base.yml'),
          ('MaxText.train_compile', '.', 'MaxText/configs/base.yml'))
CORES = {'tpu-v4': 2, 'tpu-v5p': 2}  # MaxText counts a chip of these by its cores


def find_program(folder):
    for module, root, base in PLACES:
        path = os.path.join(folder, root, *module.split('.')) + '.py'
        if os.path.exists(path):
            return module, os.path.join(folder, root), os.path.join(folder, base)
    raise Refused('--maxtext: %s is no checkout of MaxText: it has no %s' % (
        folder, 'src/maxtext/trainers/pre_train/train_compile.py'))


def compile_topology(device, count):
    return '%s-%d' % (target.TPUS[device][0], count * CORES.get(device, 1))


def run_program(program, settings, answer):
    module, root, base = program
    sys.path.insert(0, root)
    sys.argv = ['train_compile', base] + settings
    threading.Thread(target=verify.watch, args=(answer,), daemon=True).start()
    try:
        runpy.run_module(module, run_name='__main__', alter_sys=True)
    except ImportError as e:
        raise Machine('MaxText lacks a package: %s; install its own with: pip install -e %s' % (
            e, root)) from e
    except SyntaxError as e:
        raise Machine('Python %d.%d does not read that MaxText (%s, line %s); --python names another' % (
            *sys.version_info[:2], os.path.basename(e.filename or '?'), e.lineno)) from e
    except SystemExit as e:
        if e.code:
            raise Machine('train_compile ended with %s' % e.code) from e
    except Exception as e:
        path = assignment.find(answer.folder, ended=True)
        if path is None:
            raise Machine('train_compile failed: ' + ' '.join(str(e).split())[:400]) from e
    path = assignment.find(answer.folder, ended=True)
    if path is None:
        raise Machine('train_compile ended without a compiled step')
    answer.end(verify.with_total(assignment.read(path)))


def answer_of(root, out, folder):
    device, count = root['hardware']['device'], root['hardware']['count']
    if device not in target.TPUS:
        raise Refused('hardware.device: MaxText is not compiled for %s here; allowed: %s' % (
            device, ', '.join(sorted(target.TPUS))))
    program = find_program(sys.argv[1])
    target.check_installed('tpu')
    target.prepare('tpu')
    versions = target.versions('tpu')
    about = dict(compiler=target.compiler_of('tpu', versions), device=device, devices=count,
                 topology=target.topology_of(device, count), versions=versions)
    settings = ['run_name=hbmsim', 'enable_checkpointing=false',
                'compile_topology=' + compile_topology(device, count),
                'compile_topology_num_slices=1',
                'compile_xla_flags=--xla_dump_to=' + folder] + sys.argv[2:]
    run_program(program, settings, verify.Answer(out, about, folder))


if __name__ == '__main__':
    verify.main(answer_of)
