"""libhbmsim by ctypes: where it lies, its functions, its errors as exceptions."""
from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import pathlib
import warnings
from typing import Any, Iterable, Mapping, Optional, Tuple, Union

Model = Union[Mapping[str, Any], str, "os.PathLike[str]"]

_HERE = pathlib.Path(__file__).resolve().parent
_ABI = 1


class Error(Exception):
    """Anything that hbmsim cannot do; its text is what the program would have printed."""


class InputError(Error, ValueError):
    """The input is wrong: file:line:column, what, and what is allowed."""


class MachineError(Error, RuntimeError):
    """No memory, no data files, or a fault of hbmsim's own."""


class HbmsimWarning(UserWarning):
    """A remark on an input that was read all the same."""


class _Input(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("text_bytes", ctypes.c_size_t),
                ("name", ctypes.c_char_p), ("data_dir", ctypes.c_char_p)]


def _places() -> Iterable[Tuple[str, Optional[str], str]]:
    """Library, its data, the program: HBMSIM_PREFIX; the wheel; the source tree; the system."""
    prefixes = [pathlib.Path(os.environ["HBMSIM_PREFIX"])] if "HBMSIM_PREFIX" in os.environ else []
    for prefix in [*prefixes, _HERE / "native"]:
        yield (str(prefix / "lib" / f"libhbmsim.so.{_ABI}"), str(prefix / "share" / "hbmsim"),
               str(prefix / "bin" / "hbmsim"))
    tree = _HERE.parents[1]
    yield (str(tree / "build" / "fast" / "lib" / f"libhbmsim.so.{_ABI}"), str(tree),
           str(tree / "build" / "fast" / "hbmsim"))


def _load() -> Tuple[ctypes.CDLL, Optional[str], str]:
    for path, data, binary in _places():
        if os.path.exists(path):
            return ctypes.CDLL(path), data, binary
    name = ctypes.util.find_library("hbmsim") or f"libhbmsim.so.{_ABI}"
    try:
        return ctypes.CDLL(name), None, "hbmsim"
    except OSError as error:
        raise ImportError(f"libhbmsim is neither in this package nor on this system: {error}. "
                          "Install the wheel, or `make install`, or set HBMSIM_PREFIX") from error


_library, _data_dir, program = _load()
_WORDS = ctypes.POINTER(ctypes.c_char_p)
for _name in ("simulate", "plan", "sweep", "advise", "import", "plot"):
    _function = getattr(_library, "hbmsim_" + _name)
    _function.restype = ctypes.c_int
    _function.argtypes = [ctypes.POINTER(_Input), _WORDS, ctypes.POINTER(ctypes.c_void_p)]
_library.hbmsim_text.restype = ctypes.c_void_p
_library.hbmsim_text.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
_library.hbmsim_messages.restype = ctypes.c_char_p
_library.hbmsim_messages.argtypes = [ctypes.c_void_p]
_library.hbmsim_free.restype = None
_library.hbmsim_free.argtypes = [ctypes.c_void_p]
_library.hbmsim_version.restype = ctypes.c_char_p
_library.hbmsim_version.argtypes = []

__version__ = _library.hbmsim_version().decode().split()[-1]


def read_model(model: Model) -> Tuple[str, bytes]:
    """The name that messages have, and the text. A str with a line feed is YAML text."""
    if isinstance(model, Mapping):
        return "model", json.dumps(model).encode()
    if isinstance(model, str) and "\n" in model:
        return "model.yaml", model.encode()
    path = os.fspath(model)
    try:
        return path, pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: error: cannot be read: {error.strerror}") from error


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def option_words(options: Mapping[str, Any]) -> list[bytes]:
    """{"seconds": 5, "full": True, "sets": {"a.b": 1}} as --seconds=5 --full --set=a.b=1."""
    words = []
    for name, value in options.items():
        if name == "sets":
            words += [f"--set={key}={_value(v)}" for key, v in (value or {}).items()]
        elif value is True:
            words.append("--" + name)
        elif isinstance(value, (list, tuple)):
            words += [f"--{name}={v}" for v in value]
        elif value is not None and value is not False:
            words.append(f"--{name}={value}")
    return [word.encode() for word in words]


def call(function: str, name: str, text: bytes, options: Mapping[str, Any]) -> Tuple[bool, bytes]:
    """Whether the answer is yes, and what the command prints; other threads run meanwhile."""
    words = option_words(options)
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    given = _Input(text, len(text), name.encode("utf-8", "surrogateescape"),
                   _data_dir.encode() if _data_dir else None)
    result = ctypes.c_void_p()
    status = getattr(_library, "hbmsim_" + function)(ctypes.byref(given), array,
                                                     ctypes.byref(result))
    try:
        length = ctypes.c_size_t()
        address = _library.hbmsim_text(result, ctypes.byref(length))
        answer = ctypes.string_at(address, length.value)
        messages = _library.hbmsim_messages(result).decode(errors="replace").rstrip("\n")
    finally:
        _library.hbmsim_free(result)
    if status > 1:
        raise (InputError if status == 2 else MachineError)(messages)
    for line in messages.splitlines():
        warnings.warn(line, HbmsimWarning, stacklevel=4)
    return status == 0, answer
