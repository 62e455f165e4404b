"""Will this training step fit in the accelerator's memory, what is the fastest configuration that
does, what would free the gigabytes that lack?

    >>> import hbmsim
    >>> model = {"model": {"preset": "llama3-8b"}, "batch": {"global": 32, "seq": 8192},
    ...          "mesh": {"fsdp": 8}, "hardware": {"device": "nvidia-h100", "count": 8},
    ...          "compiler": "xla-gpu"}
    >>> result = hbmsim.simulate(model)
    >>> result.verdict, result.peak_bytes
    >>> hbmsim.plan(model, seconds=10).configuration

Every function takes a configuration as a dict, a path, or YAML text, and keyword arguments named as
the options of the command of its name; `sets` varies keys, {"batch.global": 64}. In a notebook a
result shows its picture. What is wrong with an input is an InputError with file, line and column;
a configuration that does not fit is no error but a result.
"""
from ._call import Error, HbmsimWarning, InputError, MachineError, __version__, program
from ._results import Advice, Picture, Plan, Simulation, Sweep
from ._commands import advise, from_hf, import_config, plan, simulate, sweep
from ._measure import Measurement, measure

__all__ = [
    "Advice", "Error", "HbmsimWarning", "InputError", "MachineError", "Measurement", "Picture",
    "Plan", "Simulation", "Sweep", "__version__", "advise", "from_hf", "import_config", "measure",
    "plan", "program", "simulate", "sweep",
]
