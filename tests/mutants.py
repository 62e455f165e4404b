"""One operator of the program turned at a time: which mutants does no test notice?

    python3 tests/mutants.py [--each 15] [--seed 1] [--files PATTERN ...] [--most SECONDS]
                             [--at FILE:LINE ...] [--plain]

In a copy of the sources all objects make one shared library, and the tests are linked with it once.
Each test runs once with objects that count lines: a mutant is tried by the tests that reach its
line, the quickest first, until one fails: killed. It is its file, compiled again and linked before
the others. What survives is tried once more in a second copy, built with the sanitizers, where the
unit tests and a part of the property tests end at what reads or writes beyond its place; not with
--plain. What survives both is printed with its line; each is equivalent, or wants a test that kills
it. Exit status 1 where something survived. `make mutants` runs it; minutes, no part of `make test`.
"""

import argparse
import collections
import fnmatch
import glob
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
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
# Where less and not greater are the same by what stands beside: the larger of two, also kept in one of
# them, the order of two that differ.
SAME = (r"(?P<a>[\w.>\[\]-]+) [<>]=? (?P<b>[\w.>\[\]-]+)\s+\?\s+(?:(?P=a) : (?P=b)|(?P=b) : (?P=a))(?![\w.>\[(-])|"
        r"if \((?P<c>[\w.>()*\[\]-]+) != (?P<d>[\w.>()*\[\]-]+)\)\s+return (?P=c) [<>] (?P=d)|"
        r"if \((?P<e>[\w.>\[\]-]+) [<>]=? (?P<f>(?:\(\w+\))?[\w.>\[\]-]+)\)\s+(?:(?P=e) = (?P=f)|(?P=f) = (?P=e));")
# What no input reaches, with what asks for it.
BUG = r"(?:if \([^;{}]*\)\s+)?HB_BUG\([^;]*;"
# Beside all unit tests; what a script or a property costs is measured.
TESTS = ["golden_" + t for t in "advise events heap orders plan searches simulate steps sweep".split()]
TESTS += ["cli/" + t for t in """accuracy advise bad calibration certificate compare
    dispatch hlo json orders outputs plan simulate sweep terminal torch verdicts""".split()]
# Of what a property test draws, a part as a test of its own: quick enough for most mutants.
FEW, FEW_CASES = " few", "4%"
# Of wall time, after which a test waits for ever, and how much more for a second of processor time.
WAIT_S, SLOWEST = 30, 12
LONGEST = 1000  # lines of a file
CUT = 0.9  # of its limit: what took as long was ended by it
ROOM_BYTES = 4 << 30
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SLOWER = 5  # than without


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
    same = {i for m in re.finditer(SAME, text) for i in range(m.start(), m.end())}
    bugs = {i for m in re.finditer(BUG, text) for i in range(m.start(), m.end())}
    for pattern, new in SWAPS:
        for m in re.finditer(pattern, text):
            if new in ("<", ">", "<=", ">=") and m.start() in same:
                continue
            line = text[text.rfind("\n", 0, m.start()) + 1:text.find("\n", m.end())]
            if not mask[m.start()] or not inside[m.start()] or m.start() in bugs or "assert" in line:
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


SWITCH = """static int hb_turned;
extern char *getenv(const char *);
extern int atoi(const char *);
extern int strncmp(const char *, const char *, unsigned long);
__attribute__((constructor)) static void hb_turn(void)
{
    const char *which = getenv("HB_MUTANT");
    if (which && strncmp(which, "%s:", %d) == 0)
        hb_turned = atoi(which + %d);
}
#line 1
"""


def functions_of(text):
    """(start, body, end, name, whether it returns, names of what it takes) of each plain function."""
    for m in re.finditer(r"^\{.*?^\}\n", text, re.S | re.M):
        start = max(text.rfind(mark, 0, m.start() - 1) + len(mark) for mark in ("\n\n", "*/\n", ";\n", "}\n", '"\n', ">\n"))
        head = text[start:m.start()]
        found = re.fullmatch(r"([\w\s*]*?)\b(\w+)\((.*)\)\s*", head, re.S)
        if not found or "..." in head or "__" in head:
            continue
        taken, depth = [""], 0
        for c in found.group(3):
            depth += {"(": 1, ")": -1}.get(c, 0)
            taken = taken + [""] if c == "," and not depth else taken[:-1] + [taken[-1] + c]
        names = [re.search(r"\(\*(\w+)\)", t) or re.search(r"(\w+)\s*(?:\[[^\]]*\])*\s*$", t) for t in taken]
        names = [] if found.group(3) == "void" else [n.group(1) for n in names]
        returns = not re.fullmatch(r"\s*(?:static\s+)?void\s*", found.group(1))
        yield start, m.start(), m.end(), found.group(2), returns, names


def all_in_one(path, text, mutants, left_out):
    """A file's text with a twin of its function for each mutant, whose lines begin at 100,000 times its
    number, and which mutants have one."""
    out, at, having = [SWITCH % (path, len(path) + 1, len(path) + 1)], 0, set()
    for start, body, end, name, returns, names in functions_of(text):
        own = [k for k, m in enumerate(mutants, 1) if body <= m[0] < end and k not in left_out]
        head = text[start:body]
        out.append(text[at:start] + head.rstrip() + ";\n")
        for k in own:
            place, length, new = mutants[k - 1]
            twin = re.sub(r"\b%s\(" % name, "%s_twin%d(" % (name, k), head, count=1)
            out.append("\n#line %d\n%s%s" % (k * 100000, "" if twin.startswith("static") else "static ", twin))
            out.append(text[body:place] + new + text[place + length:end])
        call = "return %s_twin%%d(%s);" if returns else "%s_twin%%d(%s); return;"
        cases = "".join("case %d: %s " % (k, call % (name, ", ".join(names)) % k) for k in own)
        out.append("\n#line %d\n" % (text.count("\n", 0, start) + 1) if own else "")
        out.append(head + "{" + ("switch (hb_turned) { %s}" % cases if own else "") + text[body + 1:end])
        at = end
        having.update(own)
    return "".join(out + [text[at:]]), having


class House:
    """A copy of the sources, built so that a file can be replaced; what reaches which line."""

    def __init__(self, tree, *more):
        self.tree = tree
        self.objects = os.path.join(tree, "mutant")
        self.reach_file = os.path.join(self.objects, "reach.json")
        self.which, self.kills = "", collections.Counter({(f, "golden_steps"): 3 for f in FOLDERS} | {
            ("solver", "golden_searches"): 3, ("solver", "unit/test_told_bounds"): 30, ("solver", "unit/test_told_plans"): 30,
            ("sim/graph", "golden_orders"): 30})
        self.sure = set()  # tests that killed, and pass without a mutant
        self.compiler = shlex.split(os.environ.get("CC", "cc")) + list(more)

    def sh(self, *words, **more):
        return subprocess.run(words, cwd=self.tree, **more)

    def copy(self):
        os.makedirs(self.objects, exist_ok=True)
        for name in ["base", "hw", "models", "sim", "solver", "plots", "cli", "lib", "python", "tests",
                     "examples", "docs"]:
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.tree, name),
                            dirs_exist_ok=True, copy_function=keep_time)
        for name in ["Makefile", "README.md", "HACKING.md", "CHANGELOG.md"]:
            keep_time(os.path.join(ROOT, name), os.path.join(self.tree, name))

    def prepare(self, tests, files, only=None):
        """The library with all mutants of the files, or with those of `only` by file, and the tests linked with it."""
        self.tests = set(tests)
        self.copy()
        make = ["make", "-s", "SHARED=-fPIC", "OPT=-O1", "CC=" + " ".join(self.compiler)]
        self.sh(*make, "-j2", "build/fast/libhbmsim.a", check=True)
        packages = ["yaml-0.1", "cairo"]
        serves = self.sh("pkg-config", "--exists", "libmicrohttpd").returncode == 0
        packages += ["libmicrohttpd"] * serves
        self.libs = pkg_config("--libs", packages) + ["-lglpk", "-lz", "-lm", "-ldl"]
        self.cflags = ["-std=c11", "-O1", "-DNDEBUG", "-w"] + pkg_config("--cflags", packages)
        self.cppflags = ["-I.", "-D_XOPEN_SOURCE=700"] + ["-DHB_HTTP"] * serves
        self.turn_all(files, only)
        parts = [os.path.getmtime(os.path.join(self.tree, o)) for o in ["build/fast/libhbmsim.a", *self.turned_objects]]
        if only or not newer(os.path.join(self.objects, "libhball.so"), *parts):
            self.share("mutant/libhball.so", "-Wl,--allow-multiple-definition", *self.turned_objects, "-Wl,--whole-archive",
                       "build/fast/libhbmsim.a", "-Wl,--no-whole-archive")
        self.share("mutant/libhb.so")
        version = re.search(r"^VERSION\s*:=\s*(\S+)", open(os.path.join(ROOT, "Makefile")).read(), re.M)
        places = ['-DHB_VERSION="%s"' % version.group(1), '-DHB_SOURCE_DIR="%s"' % self.tree, '-DHB_DATADIR="/none"']
        archive = os.path.getmtime(os.path.join(self.tree, "build/fast/libhbmsim.a"))
        headers = max(os.path.getmtime(h) for h in glob.glob(os.path.join(self.tree, "tests/*/*.h")))
        programs = {whole(t) for t in tests if t.startswith(("unit/", "prop/"))}
        for source in ["cli/main.c"] + ["tests/%s.c" % t for t in sorted(programs)]:
            name = "hbmsim" if source == "cli/main.c" else source[:-2]
            out = os.path.join(self.tree, "build/fast", name)
            if newer(out, archive, headers, os.path.getmtime(os.path.join(self.tree, source))):
                continue
            os.makedirs(os.path.dirname(out), exist_ok=True)
            done = self.sh(*self.compiler, *self.cppflags, *places, *self.cflags, "-o", out, source, "-Lmutant",
                           "-Wl,--no-as-needed", "-lhb", "-lhball", "-Wl,-rpath," + self.objects,
                           "-Wl,--enable-new-dtags", "-lcmocka", *self.libs, capture_output=True, text=True)
            if done.returncode:
                sys.exit("cannot link %s: %s" % (name, done.stderr[-500:]))
        return archive

    def share(self, out, *parts):
        self.sh(*self.compiler, "-shared", "-o", out, *parts, *self.libs, check=True)

    def compile(self, source, out, *more):
        return self.sh(*self.compiler, *self.cppflags, *self.cflags, "-fPIC", *more, "-c", "-o", out, source,
                       capture_output=True, text=True)

    def turn_all(self, files, only):
        """An object of each file that has all its mutants, or those of `only`; HB_MUTANT tells which is meant."""
        self.turned, self.turned_objects = {}, []
        headers = headers_time(ROOT)
        for path in files:
            source, out = "mutant/turned/" + path, "mutant/turned/" + path[:-2] + ".o"
            whole, text = os.path.join(self.tree, source), open(os.path.join(ROOT, path)).read()
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            mutants = mutants_of(os.path.join(ROOT, path))[1]
            left_out = set(range(1, len(mutants) + 1)) - only[path] if only else set()
            kept = whole + ".json"
            self.turned_objects.append(out)
            if not only and newer(kept, headers, os.path.getmtime(os.path.join(ROOT, path))):
                self.turned[path] = set(json.load(open(kept)))
                continue
            while True:
                turned, self.turned[path] = all_in_one(path, text, mutants, left_out)
                with open(whole, "w") as f:
                    f.write(turned)
                done = self.compile(source, out, "-fmax-errors=0")
                wrong = {int(n) // 100000 for n in re.findall(r":(\d+):\d+: error", done.stderr)} - {0}
                if not done.returncode:
                    break
                if not wrong or wrong <= left_out:
                    sys.exit("%s does not compile with its mutants: %s" % (path, done.stderr[-2000:]))
                left_out |= wrong
            with open(kept, "w") as f:
                json.dump(sorted(self.turned[path]), f)

    def find_reach(self, tests, files, archive, most_s):
        """Of each test its seconds of processor time and the lines that it reaches, kept from run to run: of a file
        that changed since, all lines are reached by what reached one. Counting takes some times as long: what
        is not done by then is above most_s."""
        counted = [os.path.join("mutant/reach", f[:-2] + ".o") for f in files]
        headers = headers_time(self.tree)
        for f, o in zip(files, counted):
            out = os.path.join(self.tree, o)
            os.makedirs(os.path.dirname(out), exist_ok=True)
            if not newer(out, headers, os.path.getmtime(os.path.join(self.tree, f))):
                self.compile(f, o, "--coverage")
        if not newer(os.path.join(self.tree, "mutant/reach/libhball.so"), archive):
            self.share("mutant/reach/libhball.so", "--coverage", "-Wl,--allow-multiple-definition", *counted,
                       "-Wl,--wrap=_exit", "tests/cov_exit.c", "-Wl,--whole-archive", "build/fast/libhbmsim.a",
                       "-Wl,--no-whole-archive")
        known = json.load(open(self.reach_file)) if os.path.exists(self.reach_file) else {}
        self.reach, self.listed = known.get("reach", {}), {f: set(v) for f, v in known.get("listed", {}).items()}
        for f in files:
            if known and not newer(self.reach_file, os.path.getmtime(os.path.join(self.tree, f))):
                self.listed.pop(f, None)
                for _, _, _, hit in self.reach.values():
                    hit.update({f: list(range(LONGEST))} if f in hit else {})
        self.keep_reach()
        for test in tests:
            at, limit_s = self.stamp(test), int(3 * most_s) + 5
            if self.reach.get(test, [0])[0] == at and (self.reach[test][2] or self.reach[test][1] >= CUT * limit_s):
                continue
            for old in glob.glob(os.path.join(self.objects, "reach/**/*.gcda"), recursive=True):
                os.remove(old)
            start = processor_s()
            # Where no file can be opened there are no counts either, which is no fault of the test.
            sound = self.passes(test, limit_s, os.path.join(self.objects, "reach"))
            cost = processor_s() - start
            sound = sound or (cost < CUT * limit_s and self.passes(test, limit_s))
            self.reach[test] = [at, cost, sound, self.lines_reached()]
            print("%s %s, %.1f s" % ("sound" if sound else "left out, it fails without a mutant:", test, cost), flush=True)
            self.keep_reach()

    def keep_reach(self):
        with open(self.reach_file, "w") as f:
            json.dump({"reach": self.reach, "listed": {k: sorted(v) for k, v in self.listed.items()}}, f)

    def stamp(self, test):
        places = glob.glob(os.path.join(self.tree, "tests", whole(test) + ".*")) or \
            [os.path.join(self.tree, "tests/golden", f) for f in ("golden.sh", "commands", "certificate.sh", "steps.list")]
        if places[0].endswith(".c"):  # what it reaches may be its headers' doing
            places += glob.glob(os.path.join(self.tree, "tests/*/*.h"))
        return max(os.path.getmtime(p) for p in places)

    def lines_reached(self):
        hit = {}
        counts = glob.glob(os.path.join(self.objects, "reach/**/*.gcda"), recursive=True)
        if not counts:
            return hit
        done = self.sh("gcov", "-j", "-t", *counts, capture_output=True, text=True)
        for one in done.stdout.splitlines():
            for f in json.loads(one)["files"]:
                if not f["file"].endswith(".c"):
                    continue
                self.listed.setdefault(f["file"], set()).update(n["line_number"] for n in f["lines"])
                hit.setdefault(f["file"], []).extend(n["line_number"] for n in f["lines"] if n["count"])
        return hit

    def tests_of(self, path, line, most_s):
        """The tests that reach a line, or the last before it that has code: quick ones first, those that
        reach much of its file, and those that have killed others of its folder."""
        line = max((n for n in self.listed.get(path, []) if n <= line), default=line)
        near = [t for t, (_, cost, sound, hit) in self.reach.items()
                if t in self.tests and sound and cost <= most_s and hit.get(path)]
        # A line without code of its own behind one that is never reached: whatever reaches the file.
        able = [t for t in near if line in self.reach[t][3][path]] or near
        return sorted(able, key=lambda t: (0.1 + self.reach[t][1]) / (0.1 + self.kills[folder_of(path), t]) /
                      len(self.reach[t][3][path]) ** 2)

    def build(self, path, k, text):
        """Makes the k-th mutant of a file, whose text it is, the one that tests run; False: it does not compile."""
        self.which = ""
        if k in self.turned[path]:
            self.which = "%s:%d" % (path, k)
            return True
        with open(os.path.join(self.objects, "changed.c"), "w") as f:
            f.write(text)
        if self.compile("mutant/changed.c", "mutant/changed.o").returncode:
            return False
        self.share("mutant/libhb.so", "mutant/changed.o")
        return True

    def passes(self, test, limit_s, library=None):
        """Whether a test passes; each of its processes ends, and fails it, beyond that processor time."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
            if not any("sanitize" in word for word in self.compiler):  # its shadow is terabytes
                resource.setrlimit(resource.RLIMIT_AS, (ROOM_BYTES, ROOM_BYTES))
            for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # ignored behind `&` and nohup
                signal.signal(one, signal.SIG_DFL)
        counts = os.path.join(self.tree, "counts")
        os.makedirs(counts, exist_ok=True)
        env = dict(os.environ, HB_BUILD="build/fast", HB_COUNTS=counts, CMOCKA_MESSAGE_OUTPUT="TAP",
                   HBMSIM=os.path.join(self.tree, "build/fast/hbmsim"), HB_LIMIT_S="3600", HB_MUTANT=self.which, HB_FIRST="1",
                   LSAN_OPTIONS="suppressions=%s/tests/lsan.supp:print_suppressions=0" % self.tree)
        if library:
            env["LD_LIBRARY_PATH"] = library
        if whole(test) != test:
            env["HB_CASES"] = FEW_CASES
        program = os.path.join(self.tree, "build/fast/tests", whole(test))
        words = [program] if os.path.exists(program) else ["sh", "tests/one.sh", "tests/" + test]
        # Into a file: what a test left behind may hold a pipe open.
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            try:
                done = self.sh(*words, env=env, stdout=said, stderr=subprocess.DEVNULL, timeout=WAIT_S + SLOWEST * limit_s,
                               preexec_fn=limit, stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                return False
            said.seek(0)
            text = said.read()
        if words[0] == program:
            planned = sum(int(n) for n in re.findall(r"^1\.\.(\d+)", text, re.M))
            return not done.returncode and planned == len(re.findall(r"^(?:not )?ok ", text, re.M)) > 0
        return "failed" not in text and not done.returncode

    def killer(self, tests):
        """The first test that fails, twice where it may have been for a busy machine; None: all pass."""
        def fails(t):
            return not self.passes(t, 5 + 5 * int(self.reach[t][1]))
        found = next((t for t in tests if fails(t) and (t.startswith("golden") or fails(t))), None)
        if found and self.which and found not in self.sure:
            was, self.which = self.which, ""
            if fails(found):
                sys.exit("%s fails without a mutant" % found)
            self.which = was
            self.sure.add(found)
        return found


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole(test):
    return test[:-len(FEW)] if test.endswith(FEW) else test


def newer(path, *times):
    return os.path.exists(path) and os.path.getmtime(path) >= max(times)


def headers_time(tree):
    """Of the newest: what includes it has another form where it has."""
    return max(os.path.getmtime(h) for f in ("base", "hw", "models", "sim", "solver")
               for h in glob.glob(os.path.join(tree, f, "**/*.h"), recursive=True))


def keep_time(source, to):
    """What changed is as new as this copy: it may have changed while the last one was being built."""
    if not os.path.exists(to):
        shutil.copy2(source, to)
    elif open(source, "rb").read() != open(to, "rb").read():
        shutil.copyfile(source, to)
    return to


def pkg_config(what, packages):
    done = subprocess.run(["pkg-config", what, *packages], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ask.add_argument("--each", type=int, default=15, help="mutants of each folder")
    ask.add_argument("--most", type=float, default=600, help="seconds of processor time that a test may take")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--files", nargs="*", default=[f + "/*.c" for f in FOLDERS])
    ask.add_argument("--at", nargs="*", help="all mutants of these lines, no sample")
    ask.add_argument("--tests", nargs="*", help="patterns of tests, for all there are")
    ask.add_argument("--plain", action="store_true", help="without the sanitizers")
    ask.add_argument("--tree", default=os.path.join(ROOT, "build", "mutants"))
    o = ask.parse_args()
    every = [(f, m, k) for f in sources(o.files) for k, m in enumerate(mutants_of(os.path.join(ROOT, f))[1], 1)]
    rng = random.Random(o.seed)
    chosen = []
    for folder in FOLDERS:
        own = [e for e in every if folder_of(e[0]) == folder]
        chosen += rng.sample(own, min(o.each, len(own)))
    if o.at:
        chosen = [e for e in every if "%s:%d" % (e[0], line_of(e)) in o.at]
    print("%d mutants of %d files, %d of them tried" % (len(every), len(sources(o.files)), len(chosen)), flush=True)
    units = sorted(t[len(ROOT + "/tests/"):-2] for k in ("unit", "prop") for t in glob.glob(ROOT + "/tests/%s/test_*.c" % k))
    few = [t + FEW for t in units if t.startswith("prop/")]
    tests = [t for t in sorted(units, reverse=True) + few + TESTS
             if not o.tests or any(fnmatch.fnmatch(t, p) for p in o.tests)]
    house, files = House(o.tree), sources([f + "/*.c" for f in FOLDERS])
    house.find_reach(tests, files, house.prepare(tests, files), o.most)
    survived, tried = survivors_of(house, chosen, o.most)
    if survived and not o.plain:
        print("the %d that survived, under the sanitizers" % len(survived), flush=True)
        survived, _ = survivors_of(guarded(house, survived, o.most), survived, o.most)
    for folder, of in sorted(collections.Counter(folder_of(e[0]) for e in tried).items()):
        print("%-12s %d of %d killed" % (folder, of - sum(folder_of(e[0]) == folder for e in survived), of))
    killed = len(tried) - len(survived)
    print("%d of %d killed (%.1f %%)" % (killed, len(tried), 100 * killed / max(1, len(tried))))
    return len(survived) > 0


def guarded(house, mutants, most_s):
    """A second house, built with the sanitizers, of these mutants and the quick tests that reach them."""
    second, only = House(house.tree + "-san", *SANITIZE), collections.defaultdict(set)
    for path, _, k in mutants:
        only[path].add(k)
    tests = {t for m in mutants for t in house.tests_of(m[0], line_of(m), most_s)
             if t.startswith("unit/") or t.endswith(FEW)}
    second.reach = {t: [at, SLOWER * cost, sound, hit] for t, (at, cost, sound, hit) in house.reach.items()}
    second.listed = house.listed
    second.prepare(sorted(tests), sorted(only), only)
    return second


def survivors_of(house, mutants, most_s):
    """Those that survive, and those that compile."""
    told = [(m, try_mutant(house, m, most_s)) for m in mutants]
    return [m for m, survives in told if survives], [m for m, survives in told if survives is not None]


def try_mutant(house, mutant, most_s):
    """Whether it survives; None: it does not compile."""
    path, (at, length, new), k = mutant
    text = open(os.path.join(ROOT, path)).read()
    line, start = line_of(mutant), time.time()
    if not house.build(path, k, text[:at] + new + text[at + length:]):
        return None
    tests = house.tests_of(path, line, most_s)
    killer = house.killer(tests)
    house.kills[folder_of(path), killer] += 1
    if not house.which:
        house.share("mutant/libhb.so")
    print("%s %s:%d %s -> %s  %s (%d tests, %.0f s)" % (
        "killed  " if killer else "SURVIVED", path, line, text[at:at + length].replace("\n", " ")[:60],
        new.replace("\n", " ")[:60], killer or "|" + text.splitlines()[line - 1].strip(), len(tests),
        time.time() - start), flush=True)
    return not killer


def sources(patterns):
    found = set(os.path.relpath(f, ROOT) for p in patterns for f in glob.glob(os.path.join(ROOT, p)))
    return sorted(f for f in found if os.path.basename(f) not in ("interval_table.c", "die.c", "owned.c"))


def line_of(mutant):
    return open(os.path.join(ROOT, mutant[0])).read().count("\n", 0, mutant[1][0]) + 1


def folder_of(path):
    return next(f for f in FOLDERS if path.startswith(f + "/"))


if __name__ == "__main__":
    sys.exit(main())
