"""What the functions return: the JSON that the command prints, with names for what is asked most."""
from __future__ import annotations

import html
import json
from typing import Any, Dict, List, Optional

from ._call import call


class Picture:
    """An SVG that a notebook shows."""

    def __init__(self, svg: str):
        self.svg = svg

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


class Result:
    """`data` is the JSON as a dict, `text` its very bytes; keys of it are attributes as well."""

    def __init__(self, good: bool, text: bytes):
        self.text = text
        self.data: Dict[str, Any] = json.loads(text)
        self._good = good

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})
        if name.startswith("_") or name not in data:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; its keys: "
                                 + ", ".join(data))
        return data[name]

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self.data})

    def plot(self, kind: Optional[str] = None, *, theme: str = "light", size: Optional[str] = None,
             font: Optional[str] = None) -> Picture:
        """The picture that belongs to it; kinds: `hbmsim help plot`."""
        options = {"kind": kind, "theme": theme, "size": size, "font": font}
        return Picture(call("plot", "result.json", self.text, options)[1].decode())

    def _repr_svg_(self) -> str:
        return self.plot().svg

    def _repr_html_(self) -> str:
        svg = self._repr_svg_()
        return f"<div><p>{html.escape(str(self))}</p>{svg[max(svg.find('<svg'), 0):]}</div>"


def _gib(count: float) -> str:
    return f"{count / 2**30:.2f} GiB"


class Simulation(Result):
    """One configuration: `fits`, `verdict`, `peak_bytes`, `step_seconds`, `peak`, ..."""

    @property
    def fits(self) -> bool:
        return bool(self.data["fits"])

    @property
    def verdict(self) -> str:
        """"fits", "tight" or "does not fit"."""
        return str(self.data["verdict"])

    @property
    def peak_bytes(self) -> int:
        return int(self.data["peak_bytes"])

    @property
    def step_seconds(self) -> float:
        return float(self.data["step_seconds"])

    @property
    def categories(self) -> Dict[str, int]:
        """Bytes at the peak by category; they sum to `peak_bytes`."""
        return dict(self.data["peak"]["categories"])

    @property
    def tensors(self) -> List[Dict[str, Any]]:
        """What is alive at the peak: name, category, bytes, why; the largest first."""
        return list(self.data["peak"]["tensors"])

    def __str__(self) -> str:
        return (f"{self.verdict.upper()}: {_gib(self.peak_bytes)} of "
                f"{_gib(self.data['budget_bytes'])}, {self.step_seconds:.3g} s a step, at "
                f"{self.data['peak']['at']}")

    __repr__ = __str__


class Plan(Result):
    """`status`, `configuration` (what to run), `prediction` (as of simulate), `alternatives`."""

    @property
    def found(self) -> bool:
        return "plan" in self.data

    @property
    def configuration(self) -> Dict[str, Any]:
        """The plan, complete; where nothing fits, that with the smallest peak."""
        return dict(self.data["plan"] if self.found else self.data["smallest_plan"])

    def __str__(self) -> str:
        if not self.found:
            smallest = self.data.get("smallest_peak_bytes")
            return "no plan fits" + (f"; the smallest peak is {_gib(smallest)}" if smallest else "")
        p = self.data["prediction"]
        return (f"{self.data['plan_name']}: {p['step_seconds']:.3g} s a step, "
                f"{_gib(p['peak_bytes'])} of {_gib(self.data['budget_bytes'])} ({self.data['status']})")

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.plot().svg if self.found else ""


class Sweep(Result):
    """A grid: `cells`, each with its place, `peak_bytes`, `fits`, or its `error`."""

    def fitting(self) -> List[Dict[str, Any]]:
        return [cell for cell in self.data["cells"] if cell.get("fits")]

    def __str__(self) -> str:
        return (f"{len(self.fitting())} of {len(self.data['cells'])} cells fit "
                f"({self.data['x']['key']} by {self.data['y']['key'] or 'nothing'})")

    __repr__ = __str__


class Advice(Result):
    """`levers` and `pairs`: bytes that each frees at the peak, and what it costs."""

    def __str__(self) -> str:
        best = self.data.get("suffices")
        applying = sum(1 for lever in self.data["levers"] if lever["applies"])
        return (f"peak {_gib(self.data['peak_bytes'])} of {_gib(self.data['budget_bytes'])}; "
                f"{applying} levers" + (f"; cheapest that suffices: {best}" if best else ""))

    __repr__ = __str__
