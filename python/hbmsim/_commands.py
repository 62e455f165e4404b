"""The commands as functions."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ._call import Model, call, read_model
from ._results import Advice, Plan, Simulation, Sweep

Sets = Optional[Mapping[str, Any]]
Axis = Union[str, Mapping[str, Sequence[Any]]]


def simulate(model: Model, *, sets: Sets = None, confidence: Optional[float] = None,
             full: bool = True, orders: bool = False, rank: Optional[int] = None) -> Simulation:
    """One configuration: peak memory, what stands in it, step time. full: with the curve over
    time, which the picture needs; without it the answer is smaller."""
    options = {"sets": sets, "confidence": confidence, "full": full, "orders": orders,
               "rank": rank}
    return Simulation(*call("simulate", *read_model(model), options))


def plan(model: Model, *, sets: Sets = None, objective: Optional[str] = None,
         budget: Union[int, str, None] = None, margin: Optional[str] = None,
         prefer: Optional[str] = None, confidence: Optional[float] = None, seconds: Optional[int] = None,
         thorough: bool = False, prices: bool = False, full: bool = True) -> Plan:
    """The fastest configuration that fits, proven, over what plan.search of the model frees (or
    all). seconds: of search, then the best so far."""
    options = {"sets": sets, "objective": objective, "budget": budget, "margin": margin,
               "prefer": prefer, "confidence": confidence, "seconds": seconds,
               "thorough": thorough, "prices": prices, "full": full}
    return Plan(*call("plan", *read_model(model), options))


def _axis(axis: Axis) -> str:
    """"batch.seq=2048..8192*2", or {"batch.seq": [2048, 4096]}."""
    if isinstance(axis, str):
        return axis
    (key, values), = axis.items()
    return f"{key}=" + ",".join(v if isinstance(v, str) else json.dumps(v) for v in values)


def sweep(model: Model, x: Axis, y: Optional[Axis] = None,
          facet: Union[Axis, Sequence[Axis], None] = None, *, sets: Sets = None,
          confidence: Optional[float] = None) -> Sweep:
    """A grid of configurations: what fits, with which peak."""
    facets = [facet] if isinstance(facet, (str, Mapping)) else list(facet or [])
    options = {"sets": sets, "confidence": confidence, "x": _axis(x), "y": y and _axis(y),
               "facet": [_axis(f) for f in facets]}
    return Sweep(*call("sweep", *read_model(model), options))


def advise(model: Model, *, sets: Sets = None) -> Advice:
    """Each lever pulled alone: bytes at the peak, cost in time."""
    return Advice(*call("advise", *read_model(model), {"sets": sets}))


def import_config(config: Model, *, sets: Sets = None) -> Dict[str, Any]:
    """Another program's configuration (Hugging Face, MaxText, torchtitan, Megatron, Levanter) with
    keys `configuration`, `understood`, `assumed`, `missing`."""
    answer: Dict[str, Any] = json.loads(call("import", *read_model(config), {"sets": sets})[1])
    return answer


def from_hf(config: Any, **keys: Any) -> Dict[str, Any]:
    """A configuration from a Hugging Face config: the object that transformers gives, a dict, a
    config.json or the folder that holds one. keys are laid over it:
    from_hf(config, batch={"global": 32, "seq": 4096}, hardware={"device": "tpu-v5p"})."""
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    elif not isinstance(config, Mapping) and "\n" not in str(config):
        path = pathlib.Path(os.fspath(config))
        config = path / "config.json" if path.is_dir() else path
    made: Dict[str, Any] = import_config(config)["configuration"]
    return _overlay(made, keys)


def _overlay(base: Dict[str, Any], over: Mapping[str, Any]) -> Dict[str, Any]:
    """Maps in both are merged key by key, all else is replaced."""
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _overlay(base[key], value)
        else:
            base[key] = value
    return base
