"""corrupt_certificate.py CHECKER.py CERTIFICATE.json: corrupts each kind of field of a certificate in
many ways, one at a time, and prints those which the checker does not notice, but for those that say nothing else than before or are taken on
trust. A kind of field is its path without numbers ("nodes[].rows[].by")."""
import copy
import importlib.util
import json
import random
import re
import sys

EACH_KIND = 5  # places of a kind that are tried
random.seed(17)

HARMLESS = [  # kind of field, what is done: the same is proven, or what the checker says it trusts
    # A term that is not the largest of its bound, of a cell that is above the plan by another.
    r"nodes\[\]\.(floors\[\]\.|rows\[\]\.)?[a-z_]+_(ns|bytes) (raised|lowered|removed)",
    r"nodes\[\]\.floors (empty|removed|shorter)",
    # What the engine says of configurations that are not the plan.
    r"runs\[\]\.(peak|high|host|limit)_bytes (raised|lowered)", r"runs\[\]\.step_ns (raised|lowered)",
    # A budget that no run came near; the device's own figures.
    r"(host|whole)_bytes (raised|lowered)", r"space\.link_domain (raised|lowered)",
    # Another order; a policy that stands for another one all through.
    r"(runs|policies|menus\[\]|nodes\[\]\.rows|refused|runs\[\]\.parts) reversed",
    r"policies\[\]\.(save|offload) (shorter|empty)", r"menus\[\]\[\] (raised|lowered)",
    r"runs\[\]\.parts\[\]\[\] (raised|lowered)", r"tensors.*", r"alternatives (shorter|empty)",
]


def load(path):
    spec = importlib.util.spec_from_file_location("checker", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def walk(value, path, kind, found):
    if path:
        found.setdefault(kind, []).append(path)
    if isinstance(value, dict):
        for key, item in value.items():
            if path != () or key not in ("configuration", "asked"):
                walk(item, path + (key,), (kind + "." if kind else "") + key, found)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            walk(item, path + (i,), kind + "[]", found)


def notices(checker, c):
    try:
        return bool(checker.check(c))
    except SystemExit:
        return True


def at(c, path):
    for step in path:
        c = c[step]
    return c


def lie(c):
    """(what, certificate): several fields at a time, that agree with each other."""
    def make(change):
        other = copy.deepcopy(c)
        change(other)
        return other

    def faster(o):
        plan = o["plan"]
        run = next(r for r in o["runs"] if r.get("step_ns") == plan["step_ns"])
        o["optimum"] *= 0.5
        for place in (plan, run):
            place["step_ns"] //= 2
        plan["value"] = o["optimum"]

    def no_node(o):
        at_node = o["plan"]["node"] + 1 if o["plan"]["node"] == 0 else 0
        o["runs"] = [r for r in o["runs"] if r["node"] != at_node]
        o["alternatives"] = [r for r in o["alternatives"] if r["node"] != at_node]
        o["nodes"][at_node]["rows"] = []
        o["cell_count"] = sum(1 for n in o["nodes"] for _ in n["rows"])

    def lower(o):
        for node in o["nodes"]:
            for key in [k for k in node if k.endswith("_ns")]:
                node[key] = node[key] // 4 if isinstance(node[key], int) else node[key]
            node.pop("floors", None)
            for row in node["rows"]:
                row["by"] = "floor of the layers' loops"
                row.pop("relax_ns", None)
                row["not_below"] = max(node.get(k, 0) for k in ("loops_ns", "path_ns", "relax_ns")) \
                    / (node["batch"] * o["space"]["seq"])

    def better_run(o):
        run = next(r for r in o["runs"] if r["fits"] and r["step_ns"] > o["plan"]["step_ns"])
        run["step_ns"] = o["plan"]["step_ns"] - 1

    def too_large(o):
        for r in o["runs"]:
            r["peak_bytes"] += o["budget_bytes"] if r["fits"] else 0
        o["plan"]["peak_bytes"] += o["budget_bytes"]

    for change in (faster, no_node, lower, better_run, too_large):
        yield change.__name__, make(change)


def changes(value):
    """(what is done, the value in its place); a list of two stands in place of the item."""
    if isinstance(value, bool):
        yield "turned", not value
    elif isinstance(value, (int, float)):
        yield "raised", value + max(1, abs(value) // 8) if isinstance(value, int) else value * 1.125
        yield "lowered", value - max(1, abs(value) // 8) if isinstance(value, int) else value * 0.875
        yield "negative", -value - 1
        yield "text", "7"
    elif isinstance(value, str):
        yield "other text", value + "x"
        yield "number", 7
    elif value is None:
        yield "number", 1
    elif isinstance(value, list) and len(value) > 1:
        yield "reversed", value[::-1]
        yield "shorter", value[:-1]
        yield "twice the first", value + value[:1]
    elif isinstance(value, list) and value:
        yield "empty", []


def main():
    checker = load(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        good = json.load(file)
    if checker.check(copy.deepcopy(good)):
        raise SystemExit("the certificate itself does not hold")
    found = {}
    walk(good, (), "", found)
    noticed = 0
    for kind, paths in sorted(found.items()):
        tried = random.sample(paths, min(EACH_KIND, len(paths)))
        missed = {}
        for path in tried:
            value = at(good, path)
            done = [(what, new) for what, new in changes(value) if new != value]
            if isinstance(path[-1], str):
                done.append(("removed", None))
            for what, new in done:
                c = copy.deepcopy(good)
                place = at(c, path[:-1])
                if what == "removed":
                    del place[path[-1]]
                else:
                    place[path[-1]] = new
                if notices(checker, c):
                    noticed += 1
                else:
                    missed[what] = missed.get(what, 0) + 1
        for what, count in sorted(missed.items()):
            if not any(re.fullmatch(h, "%s %s" % (kind, what)) for h in HARMLESS):
                print("missed: %s %s" % (kind, what), count, "of", len(tried))
    for what, c in lie(good):
        if not notices(checker, c):
            print("missed: all of", what)
        noticed += 1
    print("noticed: %d" % noticed)


main()
