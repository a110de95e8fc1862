"""Random absurd arguments for every public function, method and layer, on two devices.

A call begins as one of the case files, or as what the names of the parameters suggest; then some
of its arguments become values that make no sense, or too much of it. The answer is a value, a typed
error, or Python's own words about how a function is called; both devices give the same one. The
process gets a limit of memory, as huge extents are among the values.

    python -m tests.hostile.random_arguments --backend eager-cpu --first 0 --count 5000
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import random
import re
import resource
import time
import traceback
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn_backend import TensorBase
from burn_std import BurnError, ExecutionError
from burn_testing import Tolerance, difference
from burn_testing.cases.read import Case, Given, load, names
from burn_testing.cases.run import find, tensor
from tests.hostile.odd_values import LISTS, NUMBERS, OTHERS, WORDS, arrays, tensors

CASES = Path(__file__).parents[1] / "cases" / "ops"
MEMORY = 2 << 30
PATIENCE = 20.0  # seconds after which a call hangs
# What waits, ends or changes the process, or is no function of tensors.
APART = {
    "TYPE_CHECKING",
    "capture",
    "checkpoint",
    "device",
    "explain",
    "grad",
    "graph",
    "profile",
    "read_async",
    "set_printoptions",
    "value_and_grad",
    "autocast",
    "no_grad",
    "no_fusion",
    "enable_grad",
    "manual_seed",
    "device_report",
    "memory_report",
    "Config",
}
INNER = {"b", "v", "node", "T", "mT", "shape", "dtype", "device", "ndim", "nbytes", "itemsize"}


class Maker:
    """Draws values; the same seed draws the same ones for every device."""

    def __init__(self, seed: int, device: Any) -> None:
        self.dice = random.Random(seed)
        self.device = device
        self.tensors, self.arrays = tensors(device), arrays()
        self.shown: list[str] = []

    def odd(self) -> Any:
        """Return a value that hardly anything wants."""
        kind = self.dice.choices(
            ["number", "word", "list", "array", "tensor", "none", "other", "tensors", "device"],
            [8, 2, 5, 2, 7, 2, 2, 1, 1],
        )[0]
        if kind == "number":
            return self.dice.choice(NUMBERS)
        if kind == "word":
            return self.dice.choice(WORDS)
        if kind == "list":
            return self.dice.choice(LISTS)()
        if kind == "array":
            return self.dice.choice(self.arrays)()
        if kind == "tensor":
            return self.dice.choice(self.tensors)()
        if kind == "tensors":
            return [self.dice.choice(self.tensors)() for _ in range(self.dice.randrange(1, 4))]
        if kind == "device":
            return self.dice.choice([self.device, "flex:6", "cuda", self.device.autodiff()])
        return None if kind == "none" else self.dice.choice(OTHERS)()

    def plausible(self, name: str, annotation: str) -> Any:
        """Return what a parameter of this name and annotation may want."""
        d = self.dice
        if "Tensor" in annotation:
            made = self.dice.choice(self.tensors[-10:])
            return (
                [made(), made()] if re.search(r"(list|Sequence|Iterable)\[", annotation) else made()
            )
        if "DType" in annotation:
            return d.choice([burn.float32, burn.float64, burn.int64, burn.float16, None])
        if "Device" in annotation:
            return self.device
        if "str" in annotation and "Ints" not in annotation:
            return d.choice(["mean", "sum", "none", "constant", "zeros", "nearest", "linear"])
        if annotation.startswith("bool"):
            return d.random() < 0.5
        if "Ints" in annotation or "tuple[int" in annotation or "Extent" in annotation:
            return d.choice([2, 1, (2, 3), (1, 2), (2,), 0])
        if annotation.startswith("int"):
            return d.choice([1, 2, 3, 4, 0, -1])
        if "float" in annotation or "Number" in annotation:
            return d.choice([0.5, 1.0, 2.0, 0.0])
        return d.choice([2, 1.5, None, self.dice.choice(self.tensors)()])


# --- what is called -------------------------------------------------------------------------------


@cache
def targets() -> list[tuple[str, Any]]:
    """Return every public function and method, layers as `nn.`, by name."""
    found: dict[str, Any] = {}

    def add(prefix: str, place: Any, names_: Any = None) -> None:
        for name in names_ or dir(place):
            value = getattr(place, name)
            if name.startswith("_") or name in APART or inspect.ismodule(value):
                continue
            if inspect.isclass(value) and not prefix.startswith("nn."):
                continue
            if callable(value):
                found.setdefault(prefix + name, value)

    add("burn.", burn)
    for name in ("functional", "linalg", "fft"):
        module = getattr(burn, name)
        add(f"{name}.", module, getattr(module, "__all__", None))
    add("Tensor.", burn.Tensor, [n for n in dir(burn.Tensor) if n not in INNER])
    for name in (
        "__getitem__", "__setitem__", "__pow__", "__rpow__", "__matmul__", "__rsub__", "__eq__",
        "__contains__", "__floordiv__", "__rmod__", "__lshift__", "__and__", "__invert__",
        "__round__", "__abs__",
    ):  # fmt: skip
        if hasattr(burn.Tensor, name):
            found[f"Tensor.{name}"] = getattr(burn.Tensor, name)
    for name in dir(burn.nn):
        value = getattr(burn.nn, name)
        if inspect.isclass(value) and issubclass(value, burn.nn.Module):
            found[f"nn.{name}"] = value
    for prefix, place in (("optim.", burn.optim), ("schedule.", burn.optim.lr_scheduler)):
        for name in place.__all__ if hasattr(place, "__all__") else dir(place):
            value = getattr(place, name)
            # Protocols and bases of others are not made.
            plain = not getattr(value, "_is_protocol", False)
            if inspect.isclass(value) and not name.startswith("_") and plain:
                found[f"{prefix}{name}"] = value
    for name in dir(burn.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            found[f"init.{name}"] = getattr(burn.nn.init, name)
    return sorted(found.items())


@cache
def _files() -> dict[str, list[tuple[str, int]]]:
    """Return for each function which case files call it."""
    out: dict[str, list[tuple[str, int]]] = {}
    for name in names(CASES):
        text = (CASES / f"{name}.json").read_text()
        for fn in set(re.findall(r'"fn": ?"([^"]+)"', text)):
            out.setdefault(fn, []).append((name, 0))
    return out


@cache
def _cases(name: str) -> list[Case]:
    return load(CASES, name)


def _made(value: Any, device: Any) -> Any:
    if isinstance(value, Given):
        return tensor(device.context, value)
    return type(value)(_made(v, device) for v in value) if type(value) in (list, tuple) else value


def call_of(seed: int, device: Any) -> tuple[str, Any, list[Any], dict[str, Any]]:
    """Return a call: name, function and arguments."""
    maker = Maker(seed, device)
    dice = maker.dice
    name, function = dice.choice(targets())
    known = _files().get(name)
    if known and dice.random() < 0.75:
        cases = [c for c in _cases(dice.choice(known)[0]) if c.fn == name]
        case = dice.choice(cases)
        args = [_made(a, device) for a in case.args]
        kwargs = {k: _made(v, device) for k, v in case.kwargs.items()}
        function = find(name)
    else:
        args, kwargs = _suggested(function, maker)
        if name.startswith("nn."):
            layer = function
            function = lambda *a, **k: _layer(layer, maker, a, k)  # noqa: E731
    _spoil(name, args, kwargs, maker)
    return name, function, args, kwargs


def _suggested(function: Any, maker: Maker) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [maker.odd()], {}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            args += [
                maker.plausible(p.name, str(p.annotation)) for _ in range(maker.dice.randrange(3))
            ]
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif p.name == "device":
            kwargs["device"] = maker.device
        elif p.default is p.empty or maker.dice.random() < 0.3:
            value = maker.plausible(p.name, "Tensor" if p.name == "self" else str(p.annotation))
            if p.kind is p.KEYWORD_ONLY or len(args) < parameters.index(p):
                kwargs[p.name] = value
            else:
                args.append(value)
    return args, kwargs


def _layer(layer: Any, maker: Maker, args: Any, kwargs: Any) -> Any:
    """Construct a layer and call it."""
    module = layer(*args, **kwargs)
    repr(module)
    count = sum(
        p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        for p in inspect.signature(module.forward).parameters.values()
    )
    return module(*(maker.dice.choice(maker.tensors)() for _ in range(count)))


def _spoil(name: str, args: list[Any], kwargs: dict[str, Any], maker: Maker) -> None:
    dice, method = maker.dice, name.startswith("Tensor.")
    places: list[Any] = [*range(len(args)), *kwargs]
    places = [p for p in places if p != "device"]
    chosen = [p for p in places if dice.random() < 0.3] or places[:0]
    if not chosen and places and dice.random() < 0.85:
        chosen = [dice.choice(places)]
    for place in chosen:
        value = maker.odd()
        if method and place == 0 and not isinstance(value, TensorBase):
            value = dice.choice(maker.tensors)()
        (args if isinstance(place, int) else kwargs)[place] = value
    if dice.random() < 0.05 and not method:
        args.append(maker.odd())


# --- what comes of it -----------------------------------------------------------------------------


def _leaves(out: Any) -> list[Any]:
    if isinstance(out, TensorBase):
        return [out]
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in _leaves(part)]
    return []


Outcome = tuple[str, Any]
# What can only be said of values: memory that there is not, matrices that have no such factors.
OF_VALUES = ("does not fit", "be positive definite", "be invertible", "algorithm must converge")


def outcome(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Return `("value", arrays)`, `("error", class)`, or `("fault", words)`."""
    try:
        out = function(*args, **kwargs)
        found = []
        for t in _leaves(out):
            repr(t)
            if t.shape is not None and not t.dtype.is_quantized:
                found.append((t.dtype.name, t.numpy().copy()))
        return "value", found if found or isinstance(out, (tuple, list)) else repr(out)[:200]
    except BurnError as error:
        known = any(words in str(error) for words in OF_VALUES)
        known = known or "OutOfMemory" in type(error).__name__
        if isinstance(error, ExecutionError) and not known:
            return "fault", f"{type(error).__name__}: {error}"
        if len(str(error)) > 2000:
            return "fault", f"{len(str(error))} letters: {str(error)[:200]}"
        return "error", type(error).__name__
    except Exception as error:  # noqa: BLE001 - this is what must not happen
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename != __file__]
        if not own or _python_words(error, frames):
            return "error", type(error).__name__
        last = own[-1]
        return (
            "fault",
            f"{type(error).__name__}: {str(error)[:300]} ({last.filename[-40:]}:{last.lineno})",
        )


def _python_words(error: Exception, frames: Any) -> bool:
    """Whether Python itself says that a function was called wrongly."""
    words = (
        "takes no arg|missing .* required|unexpected keyword|takes .* positional|multiple values"
    )
    return isinstance(error, TypeError) and bool(re.search(words, str(error)))


def _apart(a: Outcome, b: Outcome, name: str) -> str | None:
    """Return how the answers of two devices differ."""
    if b == ("error", "IndexRangeError") and a[0] == "value":
        return None  # devices that compile clamp, and report at a sync where bounds are validated
    if a[0] != b[0]:
        return f"{a[0]} {_short(a[1])}, but {b[0]} {_short(b[1])} on flex"
    if a[0] == "error":
        return None if a[1] == b[1] else f"{a[1]}, but {b[1]} on flex"
    if a[0] != "value" or isinstance(a[1], str) or isinstance(b[1], str):
        return None
    if len(a[1]) != len(b[1]):
        return f"{len(a[1])} results, but {len(b[1])} on flex"
    for (d, x), (e, y) in zip(a[1], b[1], strict=True):
        if (d, x.shape) != (e, y.shape):
            return f"{d}{list(x.shape)}, but {e}{list(y.shape)} on flex"
        loose = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-3}.get(d, 1e-7)
        words = difference(x, y, Tolerance(loose, loose))
        if words and not name.startswith(LOOSE):
            return f"{d}{list(x.shape)}: {words}"
    return None


# Whose values nobody promises: of memory that was not written, and of ill-conditioned matrices.
LOOSE = ("burn.empty", "Tensor.new_empty", "linalg.", "burn.linalg.", "nn.", "functional.gumbel")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{d}{list(x.shape)}" for d, x in value)
    return str(value)[:300]


def shown(value: Any) -> str:
    """Return an argument in a few letters."""
    if isinstance(value, TensorBase):
        auto = ", tracked" if value.node is not None else ""
        return f"<{value.dtype}{list(value.shape)}{auto}>"
    if isinstance(value, np.ndarray):
        return f"<array {value.dtype}{list(value.shape)}>"
    if type(value) in (list, tuple) and not any(v is value for v in value):
        return f"{type(value).__name__}({', '.join(map(shown, value))[:200]})"
    return repr(value)[:60]


def check(seed: int, device: Any, reference: Any, counts: Counter[str]) -> str | None:
    """Return in words what is wrong with a call on a device."""
    start = time.monotonic()
    results, words = [], ""
    for on in dict.fromkeys((device, reference)):
        on.seed(seed)
        name, function, args, kwargs = call_of(seed, on)
        if not words:
            given = [*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())]
            words = f"{seed}: {name}({', '.join(given)})"[:600]
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        found = outcome(function, args, kwargs)
        faulthandler.cancel_dump_traceback_later()
        results.append(found)
        if found[0] == "fault":
            return f"{words}: {on}: {found[1]}"
    counts[results[0][0]] += 1
    if time.monotonic() - start > PATIENCE / 2:
        return f"{words}: took {time.monotonic() - start:.0f} s"
    apart = _apart(results[0], results[-1], name)
    return f"{words}: {apart}" if apart else None


def main() -> None:
    """Make many calls; print what is wrong and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="flex")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument(
        "--trace", help="a file that gets the number of each call before it is made"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    device, reference = burn.device(args.backend), burn.device("flex")
    counts, wrong, start, seed = Counter[str](), 0, time.monotonic(), args.first
    trace = open(args.trace, "w") if args.trace else None  # noqa: SIM115 - as long as the process
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        if trace:
            trace.seek(0)
            trace.write(f"{seed}\n")
            trace.flush()
        found = check(seed, device, reference, counts)
        if found:
            wrong += 1
            print(found, flush=True)
        seed += 1
    print(
        f"{args.backend}: calls {args.first} to {seed - 1}, {counts['value']} values, "
        f"{counts['error']} refusals, {wrong} wrong, {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
