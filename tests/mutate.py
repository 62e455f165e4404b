"""Each condition of sim/ir and sim/graph answered by force, one at a time: which does no record need?

    python3 tests/mutate.py [--errors] [--sample N] [--seed S] [--also FILE] [TEXT ...]

In a copy of the sources every condition (of an if, a loop, a choice, a bool, and each part of it that
&& and || join) asks a switch for its answer. Over the records kept in tests, and the compiler's own
estimates of its three orders (sequences*.tsv), each is forced to no and to yes where the record answers
otherwise; one that moves no prediction says nothing that these records ask for: it is deleted, or brings
the record that it was written for. What all of them answer alike is counted apart: guards, and what no
record has. Says of each that survives
    file:line function [condition] = answer, records that ask it
and of conditions that all records answer alike. --errors: all, with the sum of errors before and after in
percentage points (hours; what costs nothing to delete is below its line). TEXT: only conditions whose line
`file:line function [condition]` holds it; --sample: so many of them; --also: records that are kept
elsewhere, too. Needs clang; five minutes of processor time, no part of `make test`.
"""

import argparse
import collections
import glob
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
    """The copy, built; the conditions, as the driver numbers them from 1."""
    conditions = sorted(f for d in ("sim/ir", "sim/graph") for f in glob.glob(os.path.join(ROOT, d, "*.c")))
    for path in [p for d in FOLDERS for p in glob.glob(os.path.join(ROOT, d, "**"), recursive=True)] + [
            os.path.join(ROOT, "Makefile")]:
        if os.path.isfile(path) and path not in conditions:
            put(os.path.join(tree, os.path.relpath(path, ROOT)), open(path, "rb").read())
    all_of = []
    for path in conditions:
        path = os.path.relpath(path, ROOT)
        text, found = conditions_of(path)
        numbers = {}
        for (begin, end), function in sorted(found.items(), key=lambda x: (x[0][0], -x[0][1])):
            numbers[begin, end] = len(all_of) + 1
            all_of.append("%s:%d %s [%s]" % (path, text.count("\n", 0, begin) + 1, function,
                                             " ".join(text[begin:end].split())))
        put(os.path.join(tree, path), switched(text, numbers).encode("latin-1"))
    make = shlex.split(os.environ.get("MAKE", "make")) + ["-s", "-j2", "OPT=-O1"]
    done = subprocess.run(make + ["build/fast/tests/mutate"], cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return all_of


def answers_of(tree, count, wanted, files, errors):
    """Of each (number, answer) wanted what the driver says: asks, what, error before, after."""
    run = subprocess.Popen([os.path.join(tree, "build/fast/tests/mutate"), "all" if errors else "first",
                            str(count)] + files, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    run.stdin.write("".join("%d %d\n" % w for w in wanted))
    run.stdin.close()
    for line in run.stdout:
        number, answer, *what = line.split()
        yield int(number), int(answer == "yes"), what
    if run.wait():
        sys.exit("the records could not be run")


def main():
    ask = argparse.ArgumentParser(description="Which conditions of the lowering does no record need?")
    ask.add_argument("--errors", action="store_true")
    ask.add_argument("--sample", type=int)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--also", action="append", default=[])
    ask.add_argument("text", nargs="*")
    asked = ask.parse_args()
    tree = os.path.join(ROOT, os.environ.get("BUILD", "build"), "mutate")
    conditions = prepare(tree)
    files = [f for d in ("golden", "calibration") for f in sorted(glob.glob(os.path.join(ROOT, "tests", d, "*.jsonl")))]
    files += [os.path.abspath(f) for f in asked.also]
    files += sorted(glob.glob(os.path.join(ROOT, "tests/golden/sequences*.tsv")))
    chosen = [i for i, line in enumerate(conditions, 1)
              if not asked.text or any(t in line for t in asked.text)]
    if asked.sample:
        chosen = sorted(random.Random(asked.seed).sample(chosen, min(asked.sample, len(chosen))))
    tried, survived = collections.Counter(), collections.Counter()
    alike = unasked = 0
    wanted = [(n, a) for n in chosen for a in (0, 1)]
    for number, answer, (asks, what, before, after) in answers_of(
            tree, len(conditions), wanted, files, asked.errors):
        label = "%s = %s, %s" % (conditions[number - 1], "yes" if answer else "no", asks)
        unasked += what == "unasked"
        if what == "alike":
            alike += 1
            print(label + " answer so", flush=True)
        if what in ("unasked", "alike"):
            continue
        folder = os.path.dirname(conditions[number - 1].split(":")[0])
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
