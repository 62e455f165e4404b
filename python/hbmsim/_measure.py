"""A real step as a measured record, for `hbmsim validate` and Simulation beside it.

The measuring is that of examples/record: in a wheel those scripts lie in this package."""
from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from ._call import Error, HbmsimWarning, InputError, MachineError, Model, program, read_model

_HERE = pathlib.Path(__file__).resolve().parent


def _script(name: str) -> ModuleType:
    for folder in (_HERE / "native" / "share" / "hbmsim" / "examples" / "record",
                   _HERE.parents[1] / "examples" / "record",
                   pathlib.Path("/usr/share/hbmsim/examples/record")):
        path = folder / f"{name}.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location(f"hbmsim._{name}", path)
            assert spec and spec.loader
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise Error(f"{name}.py is not installed with this package")


class Measurement:
    """Made by measure(). `records` are dicts, a line of runs.jsonl each."""

    def __init__(self, model: Model, ident: str, source: str, reserved: bool):
        self._name, self._text = read_model(model)
        self._ident = ident
        self._source = source
        self._reserved = reserved
        self._torch: Optional[ModuleType] = None
        self._began = 0.0
        self._steps = 0
        self.records: List[Dict[str, Any]] = []

    # --- what both share

    def _record(self, printed: str, ident: str, *extra: str) -> None:
        """One more record, of what was printed, by `hbmsim record`."""
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "model.yaml"
            config.write_bytes(self._text)
            command = [program, "record", "--config", str(config), "--id", ident, "--source",
                       self._source, *extra, "-"]
            done = subprocess.run(command, input=printed, text=True, capture_output=True,
                                  check=False)
        if done.returncode != 0:
            text = done.stderr.strip().replace(str(config), self._name)
            raise (MachineError if done.returncode == 3 else InputError)(text)
        self.records.append(json.loads(done.stdout))

    def save(self, path: str) -> None:
        """Appends the records to a file of runs."""
        with open(path, "a", encoding="utf-8") as file:
            for record in self.records:
                file.write(json.dumps(record) + "\n")

    def __enter__(self) -> "Measurement":
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            self._torch = torch
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._began = time.perf_counter()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._torch is None or self.records:
            if kind is None and not self.records:
                warnings.warn("nothing was measured: no PyTorch with a GPU is imported, and "
                              "run.jax(step, ...) was not called", HbmsimWarning, stacklevel=2)
            return
        out_of_memory = kind is not None and issubclass(kind, self._torch.OutOfMemoryError)
        if kind is None:
            self._torch.cuda.synchronize()
        elif not out_of_memory:
            return
        seconds = time.perf_counter() - self._began
        script = _script("torch_record")
        extra = ["--version", "torch=" + self._torch.__version__]
        if self._reserved:
            extra += ["--kind", "max_reserved"]
        if self._steps and kind is None:
            extra += ["--step-seconds", str(seconds / self._steps)]
        printed = f"{error}\n" if out_of_memory else ""
        self._record(printed + script.print_statistics(), self._ident, *extra)

    # --- PyTorch

    def step(self) -> None:
        """Says that a step has ended, so that the record has the time of one."""
        self._steps += 1

    # --- JAX

    def jax(self, step: Callable[..., Any], *args: Any, steps: int = 0) -> Any:
        """Compiles step for args (arrays, or ShapeDtypeStructs) as jax.jit does and records what
        its compiler says of its memory; with steps it also runs, if it returns what it takes
        first, and a second record has what the device used. The compiled step is returned, or
        None where its compiler refuses it, which is a record with fits: false."""
        script = _script("jax_record")
        import jax

        version = ["--version", "jax=" + jax.__version__]
        compiled, printed = script.compile_step(step, args)
        if compiled is None or steps < 1:
            self._record(printed, self._ident, *version)
            return compiled
        try:
            seconds, statistics = script.run_step(compiled, args, steps)
        except jax.errors.JaxRuntimeError as error:
            self._record(f"{printed}\n{error}", self._ident, *version)
            return compiled
        timed = [*version, "--fits", "yes", "--step-seconds", str(seconds)]
        self._record(printed, self._ident, *timed)
        if statistics:
            self._record(str(statistics), self._ident + "-runtime", *timed)
        return compiled


def measure(model: Model, *, id: str = "run", source: str = "user",
            reserved: bool = False) -> Measurement:
    """A real step of JAX or PyTorch as a measured record of that configuration.

    PyTorch on a GPU: what runs within is measured, warm it up before; call run.step() after each
    step. An out-of-memory error is recorded, and raised on.

        with hbmsim.measure("model.yaml", id="mine") as run:
            for batch in batches:
                train(batch)
                run.step()
        run.save("runs.jsonl")

    JAX: run.jax(step, *args) compiles the step and records its memory_analysis().

        with hbmsim.measure("model.yaml", id="mine") as run:
            run.jax(step, state, batch)
    """
    return Measurement(model, id, source, reserved)
