#!/usr/bin/env python3
"""Writes measured records of your own PyTorch step, for `hbmsim validate`.

    python3 torch_record.py MODULE:FUNCTION --config model.yaml --id my-run >>runs.jsonl

FUNCTION() returns step: step() runs one training step, optimizer included. Two steps run first,
so that the optimizer's states exist; then the peak is reset and --steps more are measured. In a
distributed run call it in each rank (torchrun): each writes its own record, ID-rankN. The figure
is the peak of allocated memory; --reserved takes that of reserved memory. Only torch's public
API is used, which is the same on CUDA and ROCm; `hbmsim` must be in PATH, or named with --hbmsim.
A step that does not fit becomes a record with fits: false and what was wanted.

Not run on a GPU yet: checked with a stand-in for the torch module that returns figures and raises
out-of-memory errors as torch 2.9 does.
"""
import argparse
import importlib
import os
import subprocess
import sys
import time

import torch

WARM_UP = 2


def record(printed, options, extra=()):
    """Passes what was printed to `hbmsim record`; its line goes to standard output."""
    ident = options.id
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        ident += "-rank" + os.environ.get("RANK", "0")
    command = [options.hbmsim, "record", "--config", options.config, "--id", ident]
    command += ["--source", options.source, "--version", "torch=" + torch.__version__]
    if options.reserved:
        command += ["--kind", "max_reserved"]
    return subprocess.run(command + [*extra, "-"], input=printed, text=True, check=False).returncode


def print_statistics():
    """The allocator's figures by their full names, one a line."""
    return "".join(f"{key}: {value}\n" for key, value in torch.cuda.memory_stats().items())


def run_step(step, steps):
    """Seconds a step, and the allocator's figures of these steps."""
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps, print_statistics()


def main():
    parser = argparse.ArgumentParser(description="writes a measured record of a PyTorch step")
    parser.add_argument("step", help="MODULE:FUNCTION, which returns step")
    parser.add_argument("--config", required=True, help="the hbmsim configuration that it runs")
    parser.add_argument("--id", required=True, help="the record's name")
    parser.add_argument("--source", default="user/torch_record.py")
    parser.add_argument("--steps", type=int, default=3, help="how many are measured")
    parser.add_argument("--reserved", action="store_true", help="the peak of reserved memory")
    parser.add_argument("--hbmsim", default="hbmsim", help="the program")
    options = parser.parse_args()
    module, function = options.step.split(":")
    sys.path.insert(0, ".")
    try:
        step = getattr(importlib.import_module(module), function)()
        seconds, printed = run_step(step, max(options.steps, 1))
    except torch.OutOfMemoryError as error:
        return record(str(error) + "\n" + print_statistics(), options)
    return record(printed, options, ["--step-seconds", str(seconds)])


if __name__ == "__main__":
    sys.exit(main())
