"""Each condition of sim/ir and sim/graph answered by force, one at a time: which does no record need?

    python3 tests/mutate.py [--errors] [--sample N] [--seed S] [--every N] [--also FILE] [TEXT ...]

In a copy of the sources every condition (of an if, a loop, a choice, a bool, and each part of it that
&& and || join) asks a switch for its answer. Over the records kept in tests, and the compiler's own
estimates of its three orders (sequences*.tsv), each is forced to no and to yes; one that moves no
prediction says nothing that these records ask for: it is deleted, or brings the record that it was
written for. What all of them answer alike is counted apart: guards, and what no record has. Says of each that survives
    file:line function [condition] = answer, records that ask it
and of conditions that all records answer alike. What was found is kept: a run that was stopped goes on
where it was, and after a change the record that moved is asked first. --errors: all, with the sum of
errors before and after in percentage points: what costs nothing to delete is below its line. TEXT:
only conditions whose line `file:line function [condition]` holds it; --sample: so many of them;
--every: over one record of so many, which finds what moves soon: the next run over all begins with
that; --also: records that are kept elsewhere, too. Needs clang; ten minutes of processor time, no
part of `make test`.
"""

import argparse
import collections
import glob
import hashlib
import json
import os
import random
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["base", "hw", "models", "sim", "solver", "plots", "cli", "lib", "python", "tests"]
SWITCH = """extern unsigned char hb_asked[];
extern signed char hb_forced[];
static inline int hb_answer(int n, int x)
{
    hb_asked[n] |= x ? 2 : 1;
    return hb_forced[n] < 0 ? x : hb_forced[n];
}
"""


def extent(node):
    """Where a node stands in its own file; None inside a macro or another file."""
    begin, end = node.get("range", {}).get("begin", {}), node.get("range", {}).get("end", {})
    if "offset" not in begin or "offset" not in end or "includedFrom" in begin or "includedFrom" in end:
        return None
    return begin["offset"], end["offset"] + end["tokLen"]


def bare(node):
    while node["kind"] in ("ParenExpr", "ImplicitCastExpr") or (
            node["kind"] == "UnaryOperator" and node["opcode"] == "!"):
        node = node["inner"][0]
    return node


def joins(node):
    return node["kind"] == "BinaryOperator" and node["opcode"] in ("&&", "||")


def conditions_of(path):
    """(begin, end) -> function, of each condition of a file."""
    out = subprocess.run(["clang", "-std=c11", "-I.", "-D_XOPEN_SOURCE=700", "-Xclang", "-ast-dump=json",
                          "-fsyntax-only", path], cwd=ROOT, capture_output=True, text=True, check=True)
    text = open(os.path.join(ROOT, path), encoding="latin-1").read()
    found = {}

    def add(node, function):
        node = bare(node)
        at = extent(node)
        if at and node["kind"] != "IntegerLiteral":
            found.setdefault(at, function)
            for part in node["inner"] if joins(node) else []:
                add(part, function)

    def walk(node, function, is_bool):
        kind, inner = node.get("kind"), node.get("inner", [])
        if not kind:
            return
        if kind == "VarDecl":
            is_flag = node["type"]["qualType"] in ("bool", "_Bool", "const bool") and "init" in node
            if is_flag and inner:
                add(inner[0], function)
        elif (kind in ("IfStmt", "WhileStmt", "ConditionalOperator") or
              (kind == "ReturnStmt" and is_bool)) and inner:
            add(inner[0], function)
        elif kind == "ForStmt" and len(inner) > 2 and inner[2].get("kind") and joins(bare(inner[2])):
            add(inner[2], function)
        elif joins(node):
            add(node, function)
        for part in inner:
            walk(part, function, is_bool)

    for node in json.loads(out.stdout)["inner"]:
        at = extent(node)
        body = any(part.get("kind") == "CompoundStmt" for part in node.get("inner", []))
        if node.get("kind") != "FunctionDecl" or not body or not at or "includedFrom" in node["loc"]:
            continue
        if text[at[0]:at[1]].endswith("}") and node["name"] in text[at[0]:at[0] + 400]:
            walk(node, node["name"], node["type"]["qualType"].startswith(("bool", "_Bool")))
    return text, found


def switched(text, numbers):
    """The text with hb_answer(N, !!(...)) around each condition; numbers: extent -> N."""
    out = []
    for at in range(len(text) + 1):
        out.append("))" * sum(end == at for _, end in numbers if end == at))
        for begin, end in sorted((k for k in numbers if k[0] == at), key=lambda k: -k[1]):
            out.append("hb_answer(%d, !!(" % numbers[begin, end])
        out.append(text[at:at + 1])
    return SWITCH + "".join(out)


def put(path, text):
    """Writes what differs: what make need not build again keeps its time."""
    if not os.path.exists(path) or open(path, "rb").read() != text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(text)


def prepare(tree):
    """The copy, built; the conditions, as the driver numbers them from 1, each (line, name without its place)."""
    conditions = sorted(f for d in ("sim/ir", "sim/graph") for f in glob.glob(os.path.join(ROOT, d, "*.c")))
    for path in [p for d in FOLDERS for p in glob.glob(os.path.join(ROOT, d, "**"), recursive=True)] + [
            os.path.join(ROOT, "Makefile")]:
        if os.path.isfile(path) and path not in conditions:
            put(os.path.join(tree, os.path.relpath(path, ROOT)), open(path, "rb").read())
    all_of, again = [], collections.Counter()
    for path in conditions:
        path = os.path.relpath(path, ROOT)
        text, found = conditions_of(path)
        numbers = {}
        for (begin, end), function in sorted(found.items(), key=lambda x: (x[0][0], -x[0][1])):
            numbers[begin, end] = len(all_of) + 1
            name = "%s [%s]" % (function, " ".join(text[begin:end].split()))
            again[path, name] += 1
            all_of.append(("%s:%d %s" % (path, text.count("\n", 0, begin) + 1, name),
                           "%s %s %d" % (path, name, again[path, name])))
        put(os.path.join(tree, path), switched(text, numbers).encode("latin-1"))
    make = shlex.split(os.environ.get("MAKE", "make")) + ["-s", "-j2", "OPT=-O1"]
    done = subprocess.run(make + ["build/fast/tests/mutate"], cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return all_of


class Known:
    """What earlier runs found, by the name of a condition and its answer; lines of a file, the last one holds."""

    def __init__(self, path, stamp, every):
        self.path, self.stamp, self.every, self.said = path, stamp, str(every), {}
        for line in open(path) if os.path.exists(path) else []:
            stamp, every, what, key = line.rstrip("\n").split("\t")
            self.said[key] = stamp, every, what.split()

    def first(self, key):
        """The record that moved."""
        return int(self.said[key][2][-1]) if key in self.said else -1

    def now(self, key):
        """Of this program; what moved some records moves one of all."""
        stamp, every, what = self.said.get(key, ("", "", None))
        return what if stamp == self.stamp and (every == self.every or int(what[-1]) >= 0) else None

    def add(self, key, what):
        with open(self.path, "a") as out:
            out.write("\t".join([self.stamp, self.every, " ".join(what), key]) + "\n")


def stamp_of(paths):
    stamp = hashlib.sha256()
    for path in sorted(paths):
        stamp.update(open(path, "rb").read())
    return stamp.hexdigest()


def answers_of(tree, count, wanted, files, known, errors):
    """Of each (number, answer, key) wanted what the driver says: asks, what, error before, after."""
    for number, answer, key in wanted:
        if not errors and known.now(key):
            yield number, answer, known.now(key)
    wanted = {(n, a): k for n, a, k in wanted if errors or not known.now(k)}
    run = subprocess.Popen([os.path.join(tree, "build/fast/tests/mutate"), "all" if errors else "first", str(count),
                            known.every] + files, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    run.stdin.write("".join("%d %d %d\n" % (n, a, known.first(k)) for (n, a), k in wanted.items()))
    run.stdin.close()
    for line in run.stdout:
        number, answer, *what = line.split()
        number, answer = int(number), int(answer == "yes")
        known.add(wanted[number, answer], what)
        yield number, answer, what
    if run.wait():
        sys.exit("the records could not be run")


def main():
    ask = argparse.ArgumentParser(description="Which conditions of the lowering does no record need?")
    ask.add_argument("--errors", action="store_true")
    ask.add_argument("--sample", type=int)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--every", type=int, default=1)
    ask.add_argument("--also", action="append", default=[])
    ask.add_argument("text", nargs="*")
    asked = ask.parse_args()
    tree = os.path.join(ROOT, os.environ.get("BUILD", "build"), "mutate")
    conditions = prepare(tree)
    names = ("*-tpu *-cuda *-rocm *-rocm-steps depths fp8 published-fp8 published-mtp maxtext local-gpu xla-h100 "
             "h100-drawn speed speed-drawn speed-read speed-h100").split()
    files = [f for n in names for f in sorted(glob.glob(os.path.join(ROOT, "tests/golden", n + ".jsonl")))]
    files += sorted(glob.glob(os.path.join(ROOT, "tests/calibration/*.jsonl")))
    files += [os.path.abspath(f) for f in asked.also]
    files += sorted(glob.glob(os.path.join(ROOT, "tests/golden/sequences*.tsv")))
    known = Known(os.path.join(tree, "known.tsv"), stamp_of(
        files + [os.path.join(tree, "build/fast/libhbmsim.a"), os.path.join(tree, "tests/mutate.c")]), asked.every)
    chosen = [i for i, (line, _) in enumerate(conditions, 1)
              if not asked.text or any(t in line for t in asked.text)]
    if asked.sample:
        chosen = sorted(random.Random(asked.seed).sample(chosen, min(asked.sample, len(chosen))))
    wanted = [(n, a, "%s = %s" % (conditions[n - 1][1], "yes" if a else "no")) for n in chosen for a in (0, 1)]
    tried, survived = collections.Counter(), collections.Counter()
    alike = unasked = 0
    for number, answer, (asks, what, before, after, _) in answers_of(tree, len(conditions), wanted, files, known, asked.errors):
        label = "%s = %s, %s" % (conditions[number - 1][0], "yes" if answer else "no", asks)
        unasked += what == "unasked"
        if what == "alike":
            alike += 1
            print(label + " answer so", flush=True)
        if what in ("unasked", "alike"):
            continue
        folder = os.path.dirname(conditions[number - 1][0].split(":")[0])
        tried[folder] += 1
        survived[folder] += what == "0"
        if asked.errors:
            print("%s: %s moved, %s -> %s" % (label, what, before, after), flush=True)
        elif what == "0":
            print(label, flush=True)
    print("%d conditions, %d not asked by any record, %d always answered alike" % (
        len(chosen), unasked, alike))
    tried["in all"], survived["in all"] = sum(tried.values()), sum(survived.values())
    for folder, n in tried.items():
        print("%s: %d answers forced, %d move nothing (%.1f %%)" % (
            folder, n, survived[folder], 100 * survived[folder] / max(1, n)))


main()
