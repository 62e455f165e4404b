"""One operator of the program turned at a time: which mutants does no test notice?

    python3 tests/mutants.py [--each 15] [--seed 1] [--files PATTERN ...] [--limit SECONDS]

In a copy of the sources all objects make one shared library, and the tests are linked with it once;
a mutant is one file compiled again. Its folder's tests run, the quickest first, until one fails:
killed. What survives is printed with its line; each is equivalent, or wants a test that kills it.
Exit status 1 where something survived. `make mutants` runs it; minutes, no part of `make test`.
"""

import argparse
import glob
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["base", "sim/engine", "sim/graph", "solver"]
# Two-way swaps and changes by one, in the order in which they are looked for at a place.
SWAPS = [
    (r"(?<![<>=!-])<=(?!=)", "<"), (r"(?<![<>=!-])>=(?!=)", ">"),
    (r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>(?=\s)", ">="),
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<=\s)\+(?=\s1\b)", "-"), (r"(?<=\s)-(?=\s1\b)", "+"),
    (r"(?<=[\w)\]]\s)\+(?=\s)", "-"), (r"(?<=[\w)\]]\s)-(?=\s)", "+"),
    (r"\breturn true\b", "return false"), (r"\breturn false\b", "return true"),
    (r"\bif \((?!!)", "if (!"), (r"\+=", "-="), (r"\bbreak;", ";"), (r"\bcontinue;", ";"),
]
TESTS = {
    "base": ["unit/test_size", "unit/test_str", "unit/test_utf8", "unit/test_json", "unit/test_yaml",
             "unit/test_toml", "unit/test_rng", "unit/test_diag", "unit/test_arena", "unit/test_owned",
             "unit/test_file", "unit/test_child", "unit/test_out", "unit/test_pickle",
             "unit/test_progress", "unit/test_schema", "unit/test_import_words", "unit/test_log",
             "cli/terminal", "cli/outputs", "cli/bad", "cli/dispatch", "cli/json", "cli/simulate",
             "golden"],
    "sim/engine": ["unit/test_heap", "unit/test_heap_bfc", "unit/test_heap_cuda", "unit/test_lend",
                   "unit/test_live", "unit/test_memory", "unit/test_cost", "unit/test_timing",
                   "unit/test_timeline", "unit/test_link", "unit/test_overhead", "unit/test_interval",
                   "unit/test_result", "unit/test_validate", "unit/test_eager", "unit/test_torch",
                   "unit/test_mcore", "unit/test_load", "unit/test_params", "golden", "cli/simulate",
                   "cli/torch", "cli/compare", "cli/verdicts", "cli/calibration", "prop/test_laws",
                   "cli/accuracy", "prop/test_configs", "prop/test_floors", "prop/test_segment"],
    "sim/graph": ["unit/test_graph", "unit/test_graph_link", "unit/test_again", "unit/test_hlo",
                  "unit/test_lower_gpu_order", "golden", "cli/orders", "cli/hlo", "prop/test_laws",
                  "cli/accuracy", "prop/test_configs"],
    "solver": ["unit/test_journal", "unit/test_sweep", "golden", "cli/advise", "prop/test_floors",
               "cli/sweep", "prop/test_subsets", "cli/torch", "prop/test_torch_floor",
               "prop/test_torch_plan", "prop/test_relax", "unit/test_ilp", "cli/certificate",
               "prop/test_any_keys", "prop/test_plan", "prop/test_segment", "cli/plan",
               "prop/test_spaces"],
}
# Of wall time, by which a test that waits for ever is ended: that alone kills nothing.
WAIT_S = 3600


def code_mask(text):
    """For each character whether it is code: no comment, string or preprocessor line."""
    mask = bytearray(b"\1" * len(text))
    for m in re.finditer(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|^#[^\n]*', text, re.S | re.M):
        for i in range(m.start(), m.end()):
            mask[i] = 0
    return mask


def mutants_of(path):
    """(offset, length, replacement) of each mutant of a file; none in declarations or HB_BUG."""
    text = open(path).read()
    mask = code_mask(text)
    body = 0
    out = []
    inside = bytearray(len(text))
    for m in re.finditer(r"^\{.*?^\}", text, re.S | re.M):
        for i in range(m.start(), m.end()):
            inside[i] = 1
    for pattern, new in SWAPS:
        for m in re.finditer(pattern, text):
            line = text[text.rfind("\n", 0, m.start()) + 1:text.find("\n", m.end())]
            if not mask[m.start()] or not inside[m.start()] or "HB_BUG" in line or "assert" in line:
                continue
            if new == "if (!":
                end, depth = m.end(), 1
                while depth:
                    depth += {"(": 1, ")": -1}.get(text[end], 0)
                    end += 1
                out.append((m.start(), end - m.start(), "if (!(" + text[m.end():end] + ")"))
            else:
                out.append((m.start(), m.end() - m.start(), new))
    return text, out


class House:
    def __init__(self, tree, limit_s):
        """limit_s: of processor time, which turns on no other work of the machine, for a test."""
        self.tree = tree
        self.limit_s = limit_s
        self.objects = os.path.join(tree, "mutant")

    def sh(self, *words, **more):
        return subprocess.run(words, cwd=self.tree, **more)

    def prepare(self, tests):
        os.makedirs(self.tree, exist_ok=True)
        for name in ["base", "hw", "models", "sim", "solver", "plots", "cli", "lib", "python", "tests",
                     "examples", "docs"]:
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.tree, name),
                            dirs_exist_ok=True, copy_function=keep_time)
        for name in ["Makefile", "README.md", "HACKING.md", "CHANGELOG.md"]:
            keep_time(os.path.join(ROOT, name), os.path.join(self.tree, name))
        make = ["make", "-s", "SHARED=-fPIC", "OPT=-O1"] + (["CC=" + os.environ["CC"]] if "CC" in os.environ else [])
        self.sh(*make, "-j2", "build/fast/libhbmsim.a", check=True)
        packages = ["yaml-0.1", "cairo"]
        serves = self.sh("pkg-config", "--exists", "libmicrohttpd").returncode == 0
        packages += ["libmicrohttpd"] * serves
        self.libs = pkg_config("--libs", packages) + ["-lglpk", "-lz", "-lm", "-ldl"]
        self.cflags = ["-std=c11", "-O1", "-DNDEBUG", "-w"] + pkg_config("--cflags", packages)
        self.cppflags = ["-I.", "-D_XOPEN_SOURCE=700"] + ["-DHB_HTTP"] * serves
        os.makedirs(self.objects, exist_ok=True)
        # The archive is emptied into one shared library that tests and program are linked with.
        self.link("build/fast/libhbmsim.a")
        version = re.search(r"^VERSION\s*:=\s*(\S+)", open(os.path.join(ROOT, "Makefile")).read(), re.M)
        places = ['-DHB_VERSION="%s"' % version.group(1), '-DHB_SOURCE_DIR="%s"' % self.tree, '-DHB_DATADIR="/none"']
        compiler = shlex.split(os.environ.get("CC", "cc"))
        sources = ["tests/%s.c" % t for t in sorted(set(tests))]
        for source in ["cli/main.c"] + [s for s in sources if os.path.exists(os.path.join(self.tree, s))]:
            name = "hbmsim" if source == "cli/main.c" else source[:-2]
            out = os.path.join("build/fast", name)
            os.makedirs(os.path.dirname(os.path.join(self.tree, out)), exist_ok=True)
            done = self.sh(*compiler, *self.cppflags, *places, *self.cflags, "-o", out, source,
                           "-Lmutant", "-lhb", "-Wl,-rpath," + self.objects, "-lcmocka", *self.libs,
                           capture_output=True, text=True)
            if done.returncode:
                sys.exit("cannot link %s: %s" % (name, done.stderr[-500:]))

    def link(self, archive, changed=None):
        words = shlex.split(os.environ.get("CC", "cc")) + ["-shared", "-o", "mutant/libhb.so.new"]
        words += [changed] if changed else []
        words += ["-Wl,--allow-multiple-definition", "-Wl,--whole-archive", archive,
                  "-Wl,--no-whole-archive", *self.libs]
        self.sh(*words, check=True)
        os.replace(os.path.join(self.objects, "libhb.so.new"), os.path.join(self.objects, "libhb.so"))

    def build(self, path):
        """The library with one file compiled again; False: it does not compile."""
        compiler = shlex.split(os.environ.get("CC", "cc"))
        done = self.sh(*compiler, *self.cppflags, *self.cflags, "-fPIC", "-c", "-o", "mutant/changed.o",
                       path, capture_output=True)
        if done.returncode:
            return False
        self.link("build/fast/libhbmsim.a", "mutant/changed.o")
        return True

    def limit_time(self):
        """In a child: each of its processes ends, and fails its test, beyond that."""
        resource.setrlimit(resource.RLIMIT_CPU, (self.limit_s, self.limit_s))

    def first_failure(self, tests):
        """The test that fails; None: all pass."""
        counts = os.path.join(self.tree, "counts")
        os.makedirs(counts, exist_ok=True)
        env = dict(os.environ, HB_BUILD="build/fast", HB_COUNTS=counts, CMOCKA_MESSAGE_OUTPUT="TAP",
                   HBMSIM=os.path.join(self.tree, "build/fast/hbmsim"), HB_LIMIT_S=str(WAIT_S))
        for test in tests:
            try:
                done = self.sh("sh", "tests/one.sh", "tests/" + test, env=env, capture_output=True,
                               text=True, timeout=WAIT_S, preexec_fn=self.limit_time)
                if "failed" in done.stdout or done.returncode:
                    return test
            except subprocess.TimeoutExpired:
                print("undecided: %s waited for an hour" % test, flush=True)
        return None


def keep_time(source, to):
    if not os.path.exists(to) or open(source, "rb").read() != open(to, "rb").read():
        shutil.copy2(source, to)
    return to


def pkg_config(what, packages):
    done = subprocess.run(["pkg-config", what, *packages], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ask.add_argument("--each", type=int, default=15, help="mutants of each folder")
    ask.add_argument("--limit", type=int, default=240, help="seconds of processor time that a test may take")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--files", nargs="*", default=[f + "/*.c" for f in FOLDERS])
    ask.add_argument("--sound", action="store_true", help="all tests pass without a mutant: not tried")
    ask.add_argument("--tree", default=os.path.join(ROOT, "build", "mutants"))
    o = ask.parse_args()
    files = sorted(set(os.path.relpath(f, ROOT) for p in o.files for f in glob.glob(os.path.join(ROOT, p))))
    files = [f for f in files if os.path.basename(f) not in ("interval_table.c", "die.c", "owned.c")]
    rng = random.Random(o.seed)
    every = [(f, m) for f in files for m in mutants_of(os.path.join(ROOT, f))[1]]
    chosen = []
    for folder in FOLDERS:
        own = [e for e in every if folder_of(e[0]) == folder]
        chosen += rng.sample(own, min(o.each, len(own)))
    print("%d mutants of %d files, %d of them tried" % (len(every), len(files), len(chosen)), flush=True)
    for test in sorted(set(sum(TESTS.values(), [])) - {"golden"}):
        if not glob.glob(os.path.join(ROOT, "tests", test + ".*")):
            sys.exit("no such test: %s" % test)
    house = House(o.tree, o.limit)
    folders = sorted(set(folder_of(f) for f, _ in chosen))
    house.prepare([t for f in folders for t in TESTS[f]])
    for folder in folders:
        for test in [] if o.sound else list(TESTS[folder]):
            if house.first_failure([test]):
                print("left out, it fails without a mutant: %s" % test, flush=True)
                TESTS[folder].remove(test)
    survived = tried = 0
    by_folder = {}
    for path, (at, length, new) in chosen:
        text = open(os.path.join(ROOT, path)).read()
        start = time.time()
        place = os.path.join(house.tree, path)
        with open(place, "w") as f:
            f.write(text[:at] + new + text[at + length:])
        compiled = house.build(path)
        killer = house.first_failure(TESTS[folder_of(path)]) if compiled else None
        with open(place, "w") as f:
            f.write(text)
        if not compiled:
            continue
        tried += 1
        line = text.count("\n", 0, at) + 1
        killed, of = by_folder.get(folder_of(path), (0, 0))
        by_folder[folder_of(path)] = (killed + bool(killer), of + 1)
        survived += not killer
        print("%s %s:%d %s -> %s  %s (%.0f s)" % ("killed  " if killer else "SURVIVED", path, line,
              text[at:at + length].replace("\n", " ")[:60], new.replace("\n", " ")[:60],
              killer or "|" + text.splitlines()[line - 1].strip(), time.time() - start), flush=True)
    for folder, (killed, of) in sorted(by_folder.items()):
        print("%-12s %d of %d killed" % (folder, killed, of))
    print("%d of %d killed (%.1f %%)" % (tried - survived, tried, 100 * (tried - survived) / max(1, tried)))
    return survived > 0


def folder_of(path):
    return next(f for f in FOLDERS if path.startswith(f + "/"))


if __name__ == "__main__":
    sys.exit(main())
