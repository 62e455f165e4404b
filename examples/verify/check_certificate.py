#!/usr/bin/env python3
"""Checks a certificate of `hbmsim plan --certificate FILE`, with nothing but Python.

    python3 check_certificate.py FILE... [--hbmsim PATH]

It shares no code with the search. It enumerates the space again from the keys that were searched,
computes every bound again from its terms, and holds the rows, the runs and the plan against each
other; then it says what it took on trust. With --hbmsim the plan's configuration is simulated again.
Status 0: the certificate proves what it says; 1: it does not, each fault is told; 2: no certificate.
"""
import argparse
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile

AXES = ["data", "fsdp", "tensor", "sequence", "expert", "pipeline"]
FORMS = ["scan", "loop", "nested"]
PLACES = ["none", "pinned_host"]
POLICIES = ["none", "full", "dots", "dots_no_batch", "names"]
NONE_FITS = "none fits"
NODE_BOUND = "floor of the layers' loops"
CELL_BOUND = "floor of the step"
LAYER_BOUND = "the layers' part of what could fit"
# A plan is cut into one run more of layers only where that makes it better by this part.
WORTH_A_RUN = 0.001
# One that leaves more room is taken for the best where it is worse by no more than this part.
MOST_LOSS = 0.01
PROGRAM_BOUND = "optimum of the integer program"
PROGRAM_EMPTY = "the integer program has no solution"
MEMORY = "arguments and gradients alone exceed the budget"
SEARCHED = "searched"
REFUSED = "sizes beyond the range"
FATES = [NODE_BOUND, CELL_BOUND, LAYER_BOUND, PROGRAM_BOUND, PROGRAM_EMPTY, MEMORY, SEARCHED, REFUSED]
LIST_FATES = ["its step", "what a rank takes at least exceeds the budget", SEARCHED]
STATUSES = ["optimal", "best", "infeasible", "limit"]
TERMS = ["loops_ns", "forward_ns", "path_ns", "relax_ns", "layers_ns", "turns_ns",
         "turns_chunked_ns", "turns_host_ns", "turns_host_chunked_ns"]
# Where policies are searched without bounds, so many of each menu are tried.
FEW_POLICIES = 6
MOST_FAULTS = 20


class Faults(list):
    def __init__(self):
        super().__init__()
        self.trusted = {}
        self.checked = {}

    def say(self, text, *values):
        self.append(text % values if values else text)

    def trust(self, what, count=1):
        self.trusted[what] = self.trusted.get(what, 0) + count

    def check(self, what, count=1):
        self.checked[what] = self.checked.get(what, 0) + count


def whole(value, least=0):
    """A JSON integer, no boolean."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError("%r is no whole number of %d and more" % (value, least))
    return value


def real(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("%r is no number" % (value,))
    return float(value)


def same(a, b):
    return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= 1e-12 * abs(b))


def ranges(text):
    """The numbers of "0-3,7"; they rise."""
    numbers = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        first = int(first)
        last = int(last) if dash else first
        if first > last or (numbers and numbers[-1] >= first) or last > 10**7:
            raise ValueError("%r are no rising numbers" % text)
        numbers.extend(range(first, last + 1))
    return numbers


# --- the space, enumerated again ---


def plain(values):
    """Each once, in order."""
    return list(dict.fromkeys(values))


def powers(own, most):
    return plain([own] + [2**k for k in range(64) if 2**k <= most])


MOST_ACCUMULATE, MOST_CHUNKS, MOST_VALUES = 64, 16, 64


def asked_space(asked, whole_stack):
    """The keys of the space, from the file that was asked about."""
    plan, batch, blocks = asked["plan"], asked["batch"], asked["model"]["blocks"]
    search, keep = plan.get("search"), plan["keep"]
    own = {"batch": batch["global"], "accumulate": batch["accumulate"], "chunks": asked["loss"]["chunks"],
           "microbatches": asked["pipeline"]["microbatches"]}
    deepest = max(b["repeat"] // b["unit"] for b in blocks)
    outers = plain([0] + [n for n in [asked["stack"]["outer"]] if n]
                   + [d for d in divisors(deepest) if 1 < d < deepest])
    form, place = asked["stack"]["form"], asked["optimizer"]["offload"]
    space = {
        "mesh": [asked["mesh"][a] for a in AXES],
        "axis_max": [keep[a + "_max"] for a in AXES],
        "min_tokens_per_device": keep["min_tokens_per_device"],
        "seq": batch["seq"], "written": search is not None,
        "own_microbatches": own["microbatches"], "outers": outers[:MOST_VALUES],
        "blocks": [{"name": b["name"], "layers": b["repeat"], "unit": b["unit"],
                    "pipelined": b["pipelined"], "experts": b.get("moe", {}).get("experts", 0)}
                   for b in blocks]}
    if search is None:
        forms = {"loop"} if form == "loop" else {"scan"} if whole_stack else {"scan", "nested"}
        return {**space, "axes": AXES, "policies_free": not whole_stack, "batch": [own["batch"]],
                "accumulate": powers(own["accumulate"], MOST_ACCUMULATE),
                "chunks": powers(own["chunks"], MOST_CHUNKS), "microbatches": [own["microbatches"]],
                "forms": [f for f in FORMS if f in forms],
                "places": [p for p in PLACES if p in (place, "none") or asked["compiler"] != "xla-gpu"]}
    listed = {"batch": search["batch"]["global"], "accumulate": search["batch"]["accumulate"],
              "chunks": search["loss_chunks"], "microbatches": search["microbatches"]}
    space.update({k: plain(v) or [own[k]] for k, v in listed.items()})
    forms = search["stack"] or [form]
    if whole_stack and forms != ["nested"]:
        forms = [f for f in forms if f != "nested"]
    space["forms"] = [f for f in FORMS if f in forms]
    space["places"] = [p for p in PLACES if p in (search["optimizer_offload"] or [place])]
    space["policies_free"] = bool(search["remat"]) and not whole_stack
    mesh = search["mesh"]
    if mesh and not isinstance(mesh[0], str):
        space["meshes"] = [[m.get(a, 1) for a in AXES] if isinstance(m, dict) else m for m in mesh]
        mesh = []
    space["axes"] = [a for a in AXES if a in mesh]
    return space


class Space:
    def __init__(self, s):
        self.devices = whole(s["devices"], 1)
        self.link_domain = whole(s["link_domain"])
        self.free = [axis in s["axes"] for axis in AXES]
        if sorted(s["axes"], key=AXES.index) != s["axes"] or len(set(s["axes"])) != len(s["axes"]):
            raise ValueError("space.axes are not in order")
        self.mesh = [whole(n, 1) for n in s["mesh"]]
        self.listed = [tuple(whole(n, 1) for n in m) for m in s["meshes"]] if "meshes" in s else None
        self.axis_max = [whole(n) for n in s["axis_max"]]
        self.min_tokens = whole(s["min_tokens_per_device"])
        self.written = s["written"] is True
        self.policies_free = s["policies_free"] is True
        self.seq = whole(s["seq"], 1)
        self.batch = self.values(s, "batch")
        self.accumulate = self.values(s, "accumulate")
        self.own_microbatches = whole(s["own_microbatches"], 1)
        self.listed_microbatches = self.values(s, "microbatches")
        self.places = self.words(s, "places", PLACES)
        self.forms = self.words(s, "forms", FORMS)
        self.outers = [whole(n) for n in s["outers"]]
        self.whole_stack = s["whole_stack"] is True
        self.chunks = self.values(s, "chunks")
        self.blocks = s["blocks"]
        for b in self.blocks:
            b["steps"] = whole(b["layers"], 1) // whole(b["unit"], 1)
            whole(b["experts"])
        self.experts = any(b["experts"] for b in self.blocks)
        self.variants = [
            (place, form, outer, chunks)
            for place in self.places
            for form in self.forms
            for outer in (self.outers if form == "nested" else [0])
            for chunks in self.chunks
        ]

    @staticmethod
    def values(s, key):
        values = [whole(n, 1) for n in s[key]]
        if not values or len(set(values)) != len(values):
            raise ValueError("space.%s: %r are no values" % (key, values))
        return values

    @staticmethod
    def words(s, key, all_words):
        if [w for w in all_words if w in s[key]] != s[key] or not s[key]:
            raise ValueError("space.%s: %r; known are %r" % (key, s[key], all_words))
        return s[key]

    def meshes(self):
        """Every mesh of the devices that the keys admit, in order."""
        found = self.listed if self.listed is not None else self._split(0, self.devices)
        for mesh in found:
            if all(not most or n <= most for n, most in zip(mesh, self.axis_max)):
                yield mesh

    def _split(self, axis, left):
        if axis == len(AXES):
            if left == 1:
                yield ()
            return
        if self.free[axis]:
            most = left
            if AXES[axis] == "expert" and not self.experts:
                most = 1
            if AXES[axis] == "tensor" and self.link_domain > 1:
                most = min(most, self.link_domain)
            sizes = [n for n in divisors(left) if n <= most]
        else:
            sizes = [self.mesh[axis]] if left % self.mesh[axis] == 0 else []
        for n in sizes:
            for rest in self._split(axis + 1, left // n):
                yield (n,) + rest

    def microbatches(self, mesh):
        stages = mesh[5]
        if stages == 1:
            return [self.own_microbatches]
        values = list(self.listed_microbatches)
        if not self.written:
            values += [k * stages for k in (1, 2, 4) if k * stages not in values]
        return values

    def batches(self, mesh):
        """(batch, accumulate, microbatches) of a mesh, all of them."""
        return list(itertools.product(self.batch, self.accumulate, self.microbatches(mesh)))

    def is_divided(self, mesh, batch, accumulate, microbatches):
        """Whether the batch can be split at all, and leaves a device enough tokens."""
        data, fsdp, _, sequence, expert, pipeline = mesh
        parts = data * fsdp * expert * accumulate
        if batch * self.seq // (parts * sequence) < self.min_tokens:
            return False
        return batch % (parts * (microbatches if pipeline > 1 else 1)) == 0

    def is_variant(self, mesh, variant):
        """Whether it is another one than a scan."""
        _, form, outer, _ = variant
        if form != "nested":
            return True
        if mesh[5] > 1 and all(b["pipelined"] for b in self.blocks):
            if "scan" in self.forms:
                return False
            if outer != self.outers[0]:
                return False
        return all(b["steps"] == 1 or (outer > 1 if outer else is_composite(b["steps"]))
                   for b in self.blocks)


def divisors(n):
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted(set(small + [n // d for d in small]))


def is_composite(n):
    return any(n % d == 0 for d in range(2, math.isqrt(n) + 1))


# --- what is refused ---

SPLITS = [  # pattern, whether the refusal follows from its two numbers
    (re.compile(r"(\d+)(?: \w+)? cannot be split over .* = (\d+)[; (]"), lambda a, b: a % b),
    (re.compile(r"(\d+) experts cannot be split (\d+) ways"), lambda a, b: a % b),
    (re.compile(r"(\d+) tokens cannot be cut into (\d+) chunks"), lambda a, b: a % b),
    (re.compile(r"(\d+) layers cannot be split into .* = (\d+) chunks"), lambda a, b: a % b),
    (re.compile(r"(\d+) does not divide the (\d+) steps"), lambda a, b: b % a),
]


def check_reason(faults, reason, mesh):
    """Whether the words of a refusal are true, as far as their own numbers and the mesh say."""
    for words, n in re.findall(r"((?:(?:mesh\.)?[a-z]+ x )*(?:mesh\.)?[a-z]+) = (\d+)", reason):
        axes = [w.replace("mesh.", "") for w in words.split(" x ")]
        if set(axes) <= set(AXES) and math.prod(mesh[AXES.index(a)] for a in axes) != int(n):
            faults.say("mesh %s is refused as one with %s = %s", list(mesh), words, n)
    for pattern, fails in SPLITS:
        found = pattern.search(reason)
        if found:
            if not fails(int(found.group(1)), int(found.group(2))):
                faults.say("mesh %s is refused though it is not so: %s", list(mesh), reason)
            faults.check("refusals follow from their numbers")
            return
    faults.trust("that a mesh is refused: " + re.sub(r"\d+", "N", reason)[:90])


def read_refused(faults, space, c):
    """By mesh and batch: None (all of it) or the set of variants."""
    refused = {}
    if {row["reason"] for row in c["refused"]} != set(range(len(c["reasons"]))) \
            or len(set(c["reasons"])) != len(c["reasons"]):
        faults.say("reasons are not those of what is refused, each once")
    for row in c["refused"]:
        mesh = tuple(whole(n, 1) for n in row["mesh"])
        batches = space.batches(mesh)
        check_reason(faults, c["reasons"][whole(row["reason"])], mesh)
        for at in ranges(row["batches"]):
            key = (mesh, batches[at])
            cells = set(ranges(row["cells"])) if "cells" in row else None
            before = refused.get(key, set())
            if key in refused and (before is None or cells is None or before & cells):
                faults.say("mesh %s is refused twice", list(mesh))
            refused[key] = None if cells is None else before | cells
    return refused


# --- bounds ---


class Node:
    def __init__(self, n):
        self.mesh = tuple(whole(k, 1) for k in n["mesh"])
        self.batch = (whole(n["batch"], 1), whole(n["accumulate"], 1), whole(n["microbatches"], 1))
        self.live_bytes = whole(n["live_bytes"])
        self.state_bytes = whole(n["state_bytes"])
        self.by_mesh = n.get("by_mesh", False)
        self.beyond_range = n.get("beyond_range", False)
        self.terms = {k: term(n.get(k, 0)) for k in TERMS}
        self.floors = {}
        for f in n.get("floors", []):
            key = (f["place"], f["form"], whole(f["chunks"], 1))
            if key in self.floors:
                raise ValueError("two floors of %s" % (key,))
            self.floors[key] = None if f.get("refused") else {
                "live_bytes": whole(f["live_bytes"]), "bound_ns": term(f.get("bound_ns", 0)),
                "ends_ns": term(f.get("ends_ns", 0)), "tail_ns": term(f.get("tail_ns", 0))}
        self.rows = n["rows"]

    def floor(self, variant):
        place, form, _, chunks = variant
        return self.floors.get((place, "scan" if form == "nested" else form, chunks))

    def least_bytes(self, variant):
        f = self.floor(variant)
        return max(self.live_bytes, f["live_bytes"] if f else 0)

    def least_ns(self, variant, relax_ns, nested_again, menus):
        """No configuration of the cell takes less; of the menus' policies, or of all."""
        place, form, _, chunks = variant
        t, f = self.terms, self.floor(variant)
        again = t["forward_ns"] if form == "nested" and nested_again else 0
        path = 0 if form == "loop" else t["path_ns"] + again
        ns = max(t["loops_ns"], path, f["bound_ns"] + again if f else 0)
        if form != "scan":
            return ns
        ns = max(ns, t["relax_ns"], relax_ns)
        if not menus:
            return ns
        turns = t["turns%s%s_ns" % ("_host" if place != "none" else "", "_chunked" if chunks > 1 else "")]
        layers = max(path, t["layers_ns"], turns)
        return max(ns, layers + (f["ends_ns"] + f["tail_ns"] if f else 0))


def term(value):
    return math.inf if value == NONE_FITS else whole(value)


# --- the check ---


class Check:
    def __init__(self, c):
        self.c = c
        self.faults = Faults()
        self.space = Space(c["space"])
        self.unit = c["unit"]
        self.nodes = [Node(n) for n in c["nodes"]]
        self.found = "plan" in c
        self.best = real(c["optimum"]) if self.found else math.inf
        self.budget, self.whole_bytes, self.host_bytes = (
            math.inf if c[k] is None else whole(c[k])
            for k in ("budget_bytes", "whole_bytes", "host_bytes"))
        self.by_memory = self.unit == "bytes"
        self.cells = {}  # (node, variant) to its row
        self.left = 0
        self.whole_least = math.inf

    def value(self, node, ns, bytes_):
        if self.by_memory:
            return float(bytes_)
        if ns == math.inf:
            return ns
        return ns / (node.batch[0] * self.space.seq) if self.unit == "ns per token" else float(ns)

    def run(self):
        self.check_head()
        self.check_asked()
        self.check_space()
        self.check_terms()
        self.check_nodes()
        self.check_menus()
        self.check_runs()
        self.check_plan()
        self.check_end()
        return self.faults

    def check_head(self):
        c = self.c
        if c["status"] not in STATUSES:
            self.faults.say("status %r is none of %s", c["status"], STATUSES)
        if self.unit not in ("ns per token", "ns", "bytes"):
            raise ValueError("unit %r is not known" % self.unit)
        if self.budget > self.whole_bytes:
            self.faults.say("the budget is above the whole")
        if self.found != (c["status"] not in ("infeasible",) and c["gap"] is not None):
            self.faults.say("status %s and gap %s, and there is %s plan", c["status"], c["gap"],
                            "a" if self.found else "no")
        if c["settled"] not in (True, False) or c["nested_again"] not in (True, False):
            raise ValueError("settled and nested_again are true or false")

    def check_asked(self):
        """The space is that of the file that was asked about."""
        c = self.c
        told = dict(c["space"])
        told["blocks"] = [{k: v for k, v in b.items() if k != "steps"} for b in told["blocks"]]
        asked = asked_space(c["asked"], self.space.whole_stack)
        for key in sorted({"meshes", *asked}):
            if told.get(key) != asked.get(key):
                self.faults.say("space.%s is %s, by the file that was asked about %s", key,
                                told.get(key), asked.get(key))
        if c["model"] != c["asked"]["model"]["name"]:
            self.faults.say("the model is %r, asked was %r", c["model"], c["asked"]["model"]["name"])
        if c["nested_again"] is not c["asked"]["remat"]["outer"]:
            self.faults.say("nested_again is %s", c["nested_again"])
        count = c["asked"]["hardware"]["count"]
        if self.space.devices != count and (self.unit != "ns per token" or count % self.space.devices):
            self.faults.say("%d devices, asked were %d", self.space.devices, count)
        self.faults.trust("that \"asked\" is the file, and the budget and link_domain its device's")

    def check_space(self):
        """Each mesh, batch and variant is there once, or refused."""
        space, faults = self.space, self.faults
        refused = read_refused(faults, space, self.c)
        nodes = {}
        for node in self.nodes:
            if (node.mesh, node.batch) in nodes:
                faults.say("mesh %s with batch %s is there twice", list(node.mesh), node.batch)
            nodes[node.mesh, node.batch] = node
        due = set()
        for mesh in space.meshes():
            faults.check("meshes enumerated again")
            for batch in space.batches(mesh):
                if space.is_divided(mesh, *batch):
                    due.add((mesh, batch))
        for key in due:
            faults.check("meshes with batches enumerated again")
            if key in nodes:
                self.check_variants(nodes[key], refused.get(key, set()))
            elif key not in refused or (refused[key] is not None and not self.has_all(key, refused[key])):
                faults.say("mesh %s with batch %s is missing", list(key[0]), key[1])
        for key in nodes.keys() - due:
            faults.say("mesh %s with batch %s is none of the space", list(key[0]), key[1])
        for key in refused.keys() - due:
            faults.say("mesh %s with batch %s is refused, and none of the space", list(key[0]), key[1])

    def has_all(self, key, refused):
        return all(i in refused for i, v in enumerate(self.space.variants)
                   if self.space.is_variant(key[0], v))

    def check_variants(self, node, refused):
        where = "mesh %s with batch %s" % (list(node.mesh), node.batch)
        if refused is None:
            self.faults.say("%s is refused and searched", where)
            return
        seen = set()
        for row in node.rows:
            for at in ranges(row["cells"]):
                if at in seen:
                    self.faults.say("%s: cell %d is there twice", where, at)
                seen.add(at)
                self.cells[id(node), at] = row
        due = {i for i, v in enumerate(self.space.variants) if self.space.is_variant(node.mesh, v)}
        self.faults.check("cells", len(seen))
        if seen & refused:
            self.faults.say("%s: cells %s are refused and searched", where, sorted(seen & refused)[:5])
        if seen - due:
            self.faults.say("%s: cells %s are none of the space", where, sorted(seen - due)[:5])
        if due - seen - refused:
            self.faults.say("%s: cells %s are missing", where, sorted(due - seen - refused)[:5])

    # Rows.

    def check_terms(self):
        """What holds between the terms of a node."""
        for number, node in enumerate(self.nodes):
            t = node.terms
            where = "node %d, mesh %s, batch %s" % (number, list(node.mesh), node.batch)
            if node.by_mesh not in (True, False) or node.beyond_range not in (True, False):
                self.faults.say("%s: by_mesh and beyond_range are true or false", where)
            timed = t["loops_ns"] > 0
            excused = node.by_mesh or node.beyond_range or all(r["by"] == MEMORY for r in node.rows)
            if (timed and node.by_mesh) or not (timed or excused):
                self.faults.say("%s: its loops take %s ns, by_mesh %s", where, t["loops_ns"], node.by_mesh)
            if t["forward_ns"] > max(t["loops_ns"], t["path_ns"]):
                self.faults.say("%s: the forward pass takes longer than all loops", where)
            for (place, form, chunks), f in node.floors.items():
                if place not in PLACES or form not in FORMS or chunks not in self.space.chunks + [1]:
                    self.faults.say("%s: a floor of place %s, form %s, chunks %s", where, place, form, chunks)
                if not f:
                    continue
                # Of a pipeline, or unrolled, the two are found in other ways.
                summed = node.mesh[5] == 1 and form == "scan"
                if f["live_bytes"] < node.live_bytes or (summed and f["bound_ns"] < t["loops_ns"]):
                    self.faults.say("%s: the floor of a cell is below that of the node", where)
                plain_path = t["path_ns"] if (place, form, chunks) == ("none", "scan", 1) else 0
                if f["bound_ns"] < plain_path + f["ends_ns"] + f["tail_ns"]:
                    self.faults.say("%s: the floor of a cell is below its own path", where)

    def check_nodes(self):
        states = {}
        for node in self.nodes:
            if not node.by_mesh:
                states.setdefault(node.mesh, set()).add(node.state_bytes)
        for mesh, sizes in states.items():
            if len(sizes) > 1:
                self.faults.say("mesh %s: nodes keep %s bytes", list(mesh), sorted(sizes))
        for number, node in enumerate(self.nodes):
            where = "node %d, mesh %s, batch %s" % (number, list(node.mesh), node.batch)
            if node.state_bytes > node.live_bytes:
                self.faults.say("%s: its state is above all that lives", where)
            if node.by_mesh and node.state_bytes not in states.get(node.mesh, ()):
                self.faults.say("%s: no node of its mesh keeps %d bytes", where, node.state_bytes)
            for row in node.rows:
                self.check_row(where, node, row)
        if sum(len(ranges(r["cells"])) for n in self.nodes for r in n.rows) != self.c["cell_count"]:
            self.faults.say("the rows are not of %s cells", self.c["cell_count"])

    def check_row(self, where, node, row):
        by, relax = row["by"], term(row.get("relax_ns", 0))
        told = math.inf if row["not_below"] is None else real(row["not_below"])
        cells = ranges(row["cells"])
        word = "that linear programs proved integer ones" if row.get("proven") \
            else "that integer programs were solved"
        if by not in FATES:
            self.faults.say("%s: by %r", where, by)
        if cells[-1] >= len(self.space.variants):
            self.faults.say("%s: cell %d is none of the space", where, cells[-1])
            return
        for at in cells:
            variant = self.space.variants[at]
            limit = whole(row.get("limit_bytes", 0)) or self.budget
            self.check_cell("%s, cell %d" % (where, at), node, variant, by, told, relax, word, limit)

    def check_cell(self, where, node, variant, by, told, relax, word, limit):
        faults, again = self.faults, self.c["nested_again"]
        least_bytes = node.least_bytes(variant)
        if by == MEMORY or by == REFUSED:
            if told != math.inf:
                faults.say("%s: excluded whole, and not below %s", where, told)
            if by == MEMORY and least_bytes <= limit:
                faults.say("%s: %d bytes are within the budget", where, least_bytes)
            if limit > self.budget:
                faults.say("%s: its limit is above the budget", where)
            if limit < self.budget:
                faults.trust("what of the budget stays free for the upper end of a peak")
            if by == REFUSED:
                faults.trust("that sizes are beyond the range of 63 bits")
            else:
                faults.check("cells that exceed the budget, by their terms")
            return
        ns = node.least_ns(variant, relax, again, True)
        value = self.value(node, ns, least_bytes)
        program = by in (PROGRAM_BOUND, PROGRAM_EMPTY)
        if program and told > value:
            faults.trust(word + " (--write-lp FILE writes them)")
        elif not same(told, value):
            faults.say("%s: not below %r, but its terms say %r", where, told, value)
        else:
            faults.check("bounds computed again from their terms")
        if told < self.best and by != SEARCHED:
            if not self.c["settled"] and self.c["status"] != "limit":
                faults.say("%s: by its bound (%r) it may be better than the plan", where, told)
        if by == SEARCHED and not self.c["settled"]:
            faults.trust("that of a searched cell all configurations below the plan were run")
        self.left += self.c["settled"] and told < self.best
        if least_bytes <= self.budget:
            ns = node.least_ns(variant, relax, again, False)
            self.whole_least = min(self.whole_least, self.value(node, ns, least_bytes))

    # Policies and runs.

    def check_menus(self):
        c, space = self.c, self.space
        for p in c["policies"]:
            named = [[t for t in c["tensors"] if t in p[key]] for key in ("save", "offload")]
            if p["policy"] not in POLICIES or set(p["save"]) & set(p["offload"]) \
                    or named != [p["save"], p["offload"]]:
                self.faults.say("policy %s is none", p)
        used = {p for m in c["menus"] for p in m} | {p[2] for r in c["runs"] for p in r["parts"]}
        if used != set(range(len(c["policies"]))):
            self.faults.say("not each policy is of a menu or of a run")
        if len({json.dumps(p) for p in c["policies"]}) != len(c["policies"]):
            self.faults.say("a policy is there twice")
        if len(c["menus"]) != len(space.blocks):
            self.faults.say("%d menus for %d blocks", len(c["menus"]), len(space.blocks))
            return
        for menu in c["menus"]:
            if len(set(menu)) != len(menu) or any(whole(p) >= len(c["policies"]) for p in menu):
                self.faults.say("menu %s is of other policies", menu)
        product = math.prod(len(m) for m in c["menus"])
        split = sum(product * (len(m) - 1) / 2 * (b["steps"] - 1)
                    for m, b in zip(c["menus"], space.blocks))
        few = math.prod(min(len(m), FEW_POLICIES) for m in c["menus"])
        count = 0
        for node in self.nodes:
            for row in node.rows:
                for at in ranges(row["cells"]):
                    bounded = node.mesh[5] == 1 and at < len(space.variants) and \
                        space.variants[at][1] != "loop"
                    count += product + split if bounded else few
        if not same(float(count), real(c["considered"])):
            self.faults.say("%s configurations were considered, the menus have %s", c["considered"], count)

    def find(self, r):
        """The node, variant and row of a run."""
        node = self.nodes[whole(r["node"])]
        at = whole(r["cell"])
        row = self.cells.get((id(node), at))
        if row is None:
            self.faults.say("a run of node %d, cell %d, which is none", r["node"], at)
            return None
        return node, self.space.variants[at], row

    def check_parts(self, where, r):
        steps = [0] * len(self.space.blocks)
        last = 0
        for block, count, policy in r["parts"]:
            if whole(block) < last or whole(policy) >= len(self.c["policies"]):
                self.faults.say("%s: part %s is of no block or policy", where, [block, count, policy])
                return
            last = block
            steps[block] += whole(count, 1)
        if steps != [b["steps"] for b in self.space.blocks]:
            self.faults.say("%s: its parts have %s steps of layers", where, steps)

    def check_runs(self):
        counts = {}
        seen = {}
        if len({"high_bytes" in r for r in self.c["runs"]}) > 1:
            self.faults.say("some runs have an upper end, others none")
        for number, r in enumerate(self.c["runs"]):
            where = "run %d" % number
            place = self.find(r)
            if not place:
                continue
            self.check_parts(where, r)
            node, variant, row = place
            whole(r["peak_bytes"], 1)
            limit = math.inf if r["limit_bytes"] is None else whole(r["limit_bytes"])
            if limit > self.budget:
                self.faults.say("%s: its limit is above the budget", where)
            key = (r["node"], r["cell"])
            counts[key] = counts.get(key, 0) + 1
            # The same configuration, run again, is the same.
            told = (r["peak_bytes"] if r["fits"] else None, r.get("step_ns"))
            before = seen.setdefault(key + (json.dumps(r["parts"]),), told)
            if before != told:
                self.faults.say("%s: another result than before", where)
            self.check_run(where, r, limit, node, variant, row)
        for number, node in enumerate(self.nodes):
            for row in node.rows:
                for at in ranges(row["cells"]):
                    if counts.get((number, at), 0) != whole(row.get("run", 0)):
                        self.faults.say("node %d, cell %d: %d runs are there, of %s", number, at,
                                        counts.get((number, at), 0), row.get("run", 0))

    def check_run(self, where, r, limit, node, variant, row):
        self.faults.check("runs against plan, budget and bounds")
        if "high_bytes" in r and whole(r["high_bytes"]) < r["peak_bytes"]:
            self.faults.say("%s: its upper end is below its peak", where)
        fits = (r["peak_bytes"] <= limit and r.get("high_bytes", 0) <= self.whole_bytes
                and whole(r["host_bytes"]) <= self.host_bytes)
        if r["fits"] is not fits or ("step_ns" in r) is not fits:
            self.faults.say("%s: it fits: %s; by its bytes: %s", where, r["fits"], fits)
        if not fits:
            return
        value = self.value(node, whole(r["step_ns"], 1), r["peak_bytes"])
        if value < self.best:
            more = len(r["parts"]) - len(self.c["plan"]["parts"])
            if more > 0 and value >= self.best * (1 - more * WORTH_A_RUN):
                self.faults.check("runs that are better by less than what one part more is worth")
            else:
                self.faults.say("%s: %r is better than the plan", where, value)
        if r["peak_bytes"] < node.least_bytes(variant):
            self.faults.say("%s: its peak is below what its cell needs", where)
        least = node.least_ns(variant, term(row.get("relax_ns", 0)), self.c["nested_again"], False)
        if r["step_ns"] < least:
            self.faults.say("%s: %d ns is below its cell's bound, %s", where, r["step_ns"], least)

    def check_candidate(self, where, p):
        place = self.find(p)
        if not place:
            return math.inf
        keys = ("node", "cell", "parts", "peak_bytes", "step_ns")
        if not any(r["fits"] and all(r[k] == p[k] for k in keys) for r in self.c["runs"]):
            self.faults.say("%s is none of the runs", where)
        value = self.value(place[0], p["step_ns"], p["peak_bytes"])
        if not same(value, real(p["value"])):
            self.faults.say("%s: its value is %r, not %r", where, value, p["value"])
        return value

    def check_plan(self):
        if not self.found:
            if any(r["fits"] for r in self.c["runs"]):
                self.faults.say("there is no plan, though a run fits")
            return
        if not same(self.check_candidate("the plan", self.c["plan"]), self.best):
            self.faults.say("the optimum, %r, is not the plan's value", self.best)
        self.check_taken()
        seen = [self.c["plan"]]
        before = self.best
        for number, a in enumerate(self.c["alternatives"]):
            value = self.check_candidate("alternative %d" % number, a)
            if value < before:
                self.faults.say("alternative %d is better than the one before", number)
            before = value
            if a in seen:
                self.faults.say("alternative %d is there twice", number)
            seen.append(a)

    def check_taken(self):
        """What is printed in place of the fastest plan, for its room."""
        if "taken" not in self.c:
            return
        value = self.check_candidate("what is taken", self.c["taken"])
        if not value <= self.best * (1 + MOST_LOSS) * (1 + 1e-12):
            self.faults.say("what is taken is worse than the plan by more than %r", MOST_LOSS)
        if self.room(self.c["taken"]) <= self.room(self.c["plan"]):
            self.faults.say("what is taken leaves no more room than the plan")
        self.faults.check("what is taken for its room: a run that fits, and how far it is from the best")

    def room(self, p):
        """What a run of a candidate leaves of the budget."""
        keys = ("node", "cell", "parts", "peak_bytes")
        return max((self.whole_bytes - max(r["peak_bytes"], r.get("high_bytes", 0))
                    for r in self.c["runs"] if all(r[k] == p[k] for k in keys)), default=-math.inf)

    def check_end(self):
        c = self.c
        if not self.found:
            if c["status"] == "infeasible":
                self.check_infeasible()
            elif whole(c["left"]):
                self.faults.trust("how many cells may have a plan that was not found")
            return
        if whole(c["left"]) != self.left:
            self.faults.say("%d cells are left, by their bounds %d", c["left"], self.left)
        gap = real(c["gap"])
        least = self.menus_least() if not self.space.policies_free else self.whole_least
        proven = max(0.0, 1 - least / self.best)
        # Time that ran out leaves less proven than the terms say.
        most = 1 if c["status"] == "limit" else proven + 1e-9
        if gap < proven - 1e-9 or gap > most:
            self.faults.say("the gap is %r, by the bounds %r", gap, proven)
        if c["status"] == "optimal" and (gap > 0 or self.left):
            self.faults.say("optimal with a gap of %r, %d cells left", gap, self.left)
        if c["status"] == "best" and gap == 0:
            self.faults.say("best, and the gap is 0: that is optimal")
        self.faults.trust("that floors and linear programs are below what they bound (tests compare them "
                          "with the engine)")
        self.faults.trust("that the engine is right about a run")

    def menus_least(self):
        """Where policies are not free: of the cells that were not searched whole."""
        values = [real(row["not_below"]) for node in self.nodes for row in node.rows
                  if row["not_below"] is not None and (self.c["settled"] or row["by"] != SEARCHED)]
        return max(min(values, default=self.best), self.whole_least)

    def check_infeasible(self):
        if whole(self.c["left"]):
            self.faults.say("%d cells may fit, and nothing is said to", self.c["left"])
        for number, node in enumerate(self.nodes):
            for row in node.rows:
                if row["not_below"] is not None and row["by"] not in (SEARCHED, PROGRAM_EMPTY):
                    self.faults.say("node %d: cells %s may fit", number, row["cells"])


class ListCheck:
    """Of compiler torch: every configuration of the space is a row of its own."""

    def __init__(self, c):
        self.c = c
        self.faults = Faults()

    def run(self):
        c, faults = self.c, self.faults
        if c["status"] not in STATUSES:
            faults.say("status %r is none of %s", c["status"], STATUSES)
        best = real(c["optimum"]) if "optimum" in c else math.inf
        seen, reached = set(), False
        for row in c["cells"]:
            key = json.dumps({k: v for k, v in row.items() if k not in ("by", "not_below", "run")})
            told = real(row["not_below"]) if "not_below" in row else math.inf
            if key in seen:
                faults.say("a configuration is there twice: %s", key)
            seen.add(key)
            if told < best:
                faults.say("%s: %r is below the optimum", key, told)
            if row["by"] not in LIST_FATES:
                faults.say("%s: by %r", key, row["by"])
            reached = reached or (row["by"] == SEARCHED and same(told, best))
            faults.check("configurations against the optimum")
        if best < math.inf and not reached:
            faults.say("no row reaches the optimum")
        if (best == math.inf) is not (c["status"] == "infeasible") and c["status"] != "limit":
            faults.say("status %s with optimum %s", c["status"], best)
        faults.trust("that the rows are the whole space of the file, and their steps and peaks")
        return faults


def check_again(faults, path, c):
    """The plan's configuration, simulated by hbmsim."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(c["configuration"], file)
        file.flush()
        done = subprocess.run([path, "simulate", file.name, "--json"], capture_output=True, text=True)
    again = json.loads(done.stdout)
    if again["peak_bytes"] != c["plan"]["peak_bytes"]:
        faults.say("simulated again the plan's peak is %d", again["peak_bytes"])
    if abs(again["step_seconds"] * 1e9 - c["plan"]["step_ns"]) > 0.5:
        faults.say("simulated again the plan's step is %r s", again["step_seconds"])
    faults.check("the plan simulated again")


def check(c, hbmsim=None):
    """Faults of a certificate; each is a line."""
    if not isinstance(c, dict) or c.get("certificate") != 2:
        raise SystemExit("no certificate of this form (2)")
    faults = Faults()
    try:
        faults = (ListCheck if "nodes" not in c else Check)(c).run()
        if hbmsim and "configuration" in c and not faults:
            check_again(faults, hbmsim, c)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, ZeroDivisionError,
            OverflowError) as e:
        faults.say("it cannot be read: %s: %s", type(e).__name__, e)
    return faults


def report(name, c, faults):
    print("%s: %s of %s" % (name, c.get("status"), c.get("model")))
    for text in faults[:MOST_FAULTS]:
        print("  fault: " + text)
    if len(faults) > MOST_FAULTS:
        print("  and %d more" % (len(faults) - MOST_FAULTS))
    for what, count in faults.checked.items():
        print("  checked %9d  %s" % (count, what))
    for what, count in faults.trusted.items():
        print("  trusted %9d  %s" % (count, what))
    print("  it %s" % ("does not prove what it says" if faults else "holds"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--hbmsim", help="simulate the plan's configuration again with this program")
    options = parser.parse_args()
    bad = False
    for name in options.files:
        try:
            with open(name, encoding="utf-8") as file:
                c = json.load(file)
        except (OSError, ValueError) as e:
            print("check_certificate.py: %s: %s" % (name, e), file=sys.stderr)
            return 2
        faults = check(c, options.hbmsim)
        report(name, c, faults)
        bad = bad or bool(faults)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
