"""`python -m burn devices | backends | doctor | where OP`: what is here, and where it stands."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import burn_tensor
from burn import _doctor
from burn_dispatch import BACKENDS, DECORATORS, Device, Devices, device_report, resource
from burn_ir import CATALOG, Entry
from burn_std import BurnError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m burn", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="the devices there are, and the default one")
    commands.add_parser("backends", help="installed backends and decorators, with their state")
    commands.add_parser("doctor", help="versions, drivers, devices, caches, and what is amiss")
    where = commands.add_parser("where", help="file and line of all that makes up an operation")
    where.add_argument("op", help="name of an operation, such as matmul")
    chosen = parser.parse_args(arguments)
    # What is logged about broken backends is printed here in any case.
    logging.getLogger("burn").addHandler(logging.NullHandler())
    if chosen.command == "devices":
        return devices()
    if chosen.command == "backends":
        return backends()
    if chosen.command == "doctor":
        return doctor()
    return show(chosen.op)


def devices() -> int:
    """Print every device, every backend that breaks, and why the default one is the default."""
    there = Device.enumerate()
    for found in there:
        print(found.name)
    for name, error in there.broken.items():
        print(f"{name}: broken: {error}")
    try:
        print(f"default: {Device.default().name}")
    except BurnError as error:
        print(f"default: none: {error}")
        return 1
    for line in device_report().splitlines():
        print(f"  {line}")
    return 0


def backends() -> int:
    """Print one line per plugin, importing each."""
    there = Device.enumerate()
    for group in (BACKENDS, DECORATORS):
        print(group.group)
        for name in group.names():
            with suppress(BurnError):  # its state, shown below, says why
                group.load(name)
        for info in group.infos():
            line = f"  {info.name:12} {info.distribution} {info.version}  {info.status}"
            if info.status == "loaded":
                line += f"  {getattr(group.load(info.name), 'about', '')}"
            if group is BACKENDS and info.status == "loaded":
                if info.name in there.broken:
                    line += f", broken: {there.broken[info.name]}"
                else:
                    line += _count(info.name, there)
            print(line)
    return 0


def _count(name: str, there: Devices) -> str:
    """Say how many devices a backend has, and whether their operations are recorded."""
    # Bare where it would stand behind a decorator that is not installed.
    found = [d for d in there if d.resource.name in (name, f"eager-{name}")]
    says = f", {len(found)} device(s)"
    behind = getattr(BACKENDS.load(name), "behind", ())
    if behind:
        missing = [d for d in behind if not DECORATORS.installed(d)]
        run = f"at once: {missing[0]} is not installed" if missing else "recorded"
        says += f", operations {run}"
    return says


def doctor() -> int:
    """Print the whole report; the status is 1 if something that is installed does not work."""
    lines, problems = _doctor.report()
    for line in lines:
        print(line)
    print(f"problems: {len(problems)}")
    for number, problem in enumerate(problems, 1):
        print(f"  {number}. {problem}")
    return 1 if problems else 0


# ---- where -------------------------------------------------------------------------------------


def show(name: str) -> int:
    """Print where an operation's entry, methods, kernels, rule and samples stand."""
    entry = CATALOG.get(name)
    methods = list(_methods(name))
    if entry is None and not methods:
        known = [e.name for e in CATALOG] + burn_tensor.__all__
        near = list(dict.fromkeys(get_close_matches(name, known, 6)))[:3]
        print(f"where: no operation of that name; got {name!r}. Near: {', '.join(near) or 'none'}")
        return 1
    rows: list[tuple[str, str]] = []
    if entry is not None:
        declared = _declared("burn_ir", "catalog", r"op|for|_name", name)
        rows.append(("entry", declared))
        rows.append(("shape rule", _place(entry.infer)))
        if entry.decompose is not None:
            rows.append(("decomposition", _place(entry.decompose)))
    rows += methods
    if entry is not None and not methods:
        rows += _by_rank(name)
    if entry is not None:
        rows += _kernels(entry)
        rule = DECORATORS.load("autodiff").rule_of(name)
        rows.append(("backward", "none" if rule is None else _place(rule)))
        family = Path(declared.rpartition(":")[0]).stem
        rows.append(("samples", _declared("burn_testing", "samples", r"sample", name, family)))
    width = max(len(label) for label, _ in rows)
    for label, place in rows:
        print(f"{label.ljust(width)}  {place}")
    return 0


def _methods(name: str) -> Iterator[tuple[str, str]]:
    method = getattr(burn_tensor.Tensor, name, None)
    if isinstance(method, FunctionType):
        yield "method", _place(method)
    function = getattr(burn_tensor, name, None)
    if isinstance(function, FunctionType) and not isinstance(method, FunctionType):
        yield "function", _place(function)
    for space in ("functional", "linalg", "fft"):
        function = getattr(getattr(burn_tensor, space), name, None)
        if isinstance(function, FunctionType):
            yield f"{space}", _place(function)


def _by_rank(name: str) -> Iterator[tuple[str, str]]:
    """Yield the functions that call an operation of any rank: conv1d, conv2d and conv3d."""
    for rank in (1, 2, 3):
        function = getattr(burn_tensor.functional, f"{name}{rank}d", None)
        if isinstance(function, FunctionType):
            yield f"functional.{name}{rank}d", _place(function)


def _kernels(entry: Entry) -> Iterator[tuple[str, str]]:
    for name in BACKENDS.names():
        label = f"kernel ({name})"
        try:
            table = resource(name).backend.table
        except BurnError as error:
            yield label, f"not loaded: {error}"
            continue
        kernel = table.get(entry.name)
        if kernel is not None:
            yield label, _place(kernel.make)
        else:
            yield label, "none" if entry.decompose is None else "none, by decomposition"


def _place(fn: Any) -> str:
    """Return file and line of a function, seen through the decorators that hold it."""
    fn = _inner(fn)
    code = getattr(fn, "__code__", None)
    if code is None:
        return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__name__', fn)}"
    return f"{_short(Path(code.co_filename))}:{code.co_firstlineno}"


def _inner(fn: Any) -> Callable[..., Any]:
    while True:
        if isinstance(fn, partial):
            held = [a for a in (*fn.args, *fn.keywords.values()) if isinstance(a, FunctionType)]
            fn = held[0] if held else fn.func
            continue
        wrapped = getattr(fn, "__wrapped__", None)
        if wrapped is None and "<locals>" in getattr(fn, "__qualname__", ""):
            # Made by a decorator: what was written down is the function it holds, if any.
            cells = [c.cell_contents for c in fn.__closure__ or ()]
            wrapped = next((c for c in cells if isinstance(c, FunctionType)), None)
        if wrapped is None:
            out: Callable[..., Any] = fn
            return out
        fn = wrapped


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _declared(package: str, folder: str, words: str, name: str, family: str = "") -> str:
    """Return where a package's folder declares something under the name, read from its text.

    A name that a loop declares is found where it is listed, in the module of its family if one
    is given: elsewhere the same word may be a mode.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return f"{package} is not installed"
    quoted = re.compile(rf"[\"' ]{re.escape(name)}[\"' ]")
    other = re.compile(rf"\b(?:{words})\w*\(\s*[\"']")  # declares something else
    direct = re.compile(rf"\b(?:{words})\w*\(\s*[\"']{re.escape(name)}[\"']")
    listed = None
    paths = sorted((Path(spec.origin).parent / folder).glob("*.py"))
    stems = {path.stem for path in paths}
    families = {family} if family in stems else stems
    for path in paths:
        if folder == "catalog" and path.stem.startswith("decompose"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if direct.search(line):
                return f"{_short(path)}:{number}"
            if (
                listed is None
                and path.stem in families
                and '"' in line
                and quoted.search(line)
                and not other.search(line)
            ):
                listed = f"{_short(path)}:{number}"
    if listed is None and folder == "samples":
        return f"made for every operation of its kind in the modules of {package}.samples"
    return listed or "none"


if __name__ == "__main__":
    sys.exit(main())
