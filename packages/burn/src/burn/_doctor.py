"""What `python -m burn doctor` finds: versions, drivers, devices, plugins, caches, problems.

Every look asks one thing and answers in lines; a look that fails is a finding, never the end of
the report. Drivers are asked here and nowhere at import.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path

from burn_dispatch import BACKENDS, DECORATORS, Device, device_report
from burn_std import BurnError, PluginGroup, load_object
from burn_store import FORMATS
from burn_train import VIEWS

RUNTIMES = PluginGroup("burn.cube_runtimes")
GROUPS = (BACKENDS, DECORATORS, RUNTIMES, FORMATS, VIEWS)

# What this project has beyond what the facade needs, and what for.
OPTIONAL = {
    "burn-cube": "kernels of your own; the runtimes that compile them",
    "burn-cube-backend": "compiled devices for CPU, NVIDIA GPUs and OpenCL",
    "burn-testing": "the conformance suite for backends",
}
# A requirement in a distribution's metadata: its name, and the extra that it belongs to.
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:.*extra == ['\"]([^'\"]+)['\"])?")


def report() -> tuple[list[str], list[str]]:
    """Return the lines of the report and the problems: what is installed and does not work."""
    problems: list[str] = []
    sections: list[tuple[str, Callable[[], Iterator[str]]]] = [
        ("machine", machine),
        ("packages", packages),
        ("libraries", libraries),
        ("drivers", drivers),
        ("plugins", lambda: plugins(problems)),
        ("devices", lambda: devices(problems)),
        ("settings", settings),
        ("caches", caches),
    ]
    lines: list[str] = []
    for title, look in sections:
        lines.append(title)
        lines += [f"  {line}" for line in look()]
    return lines, problems


def machine() -> Iterator[str]:
    """Say what Python and which computer this is."""
    yield f"Python {platform.python_version()} at {sys.executable}"
    yield f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield f"{os.cpu_count()} processors"


def packages() -> Iterator[str]:
    """Name every package of this project with its version, and those that are not here."""
    found = _ours()
    for name in sorted(found):
        yield f"{name:18} {found[name].version}"
    for name, purpose in OPTIONAL.items():
        if name not in found:
            yield f"{name:18} not installed: {purpose}. uv sync --inexact --package {name}"


def _ours() -> dict[str, Distribution]:
    named = {dist.name.lower(): dist for dist in distributions()}
    return {n: dist for n, dist in named.items() if n == "burn" or n.startswith("burn-")}


def libraries() -> Iterator[str]:
    """Name the libraries that the packages here ask for, and how to get those that are missing."""
    wanted: dict[str, str] = {}
    for name, dist in sorted(_ours().items()):
        for requirement in dist.requires or ():
            found = _REQUIREMENT.match(requirement)
            if found and not found[1].startswith("burn"):
                extra = f" --extra {found[2]}" if found[2] else ""
                wanted.setdefault(found[1].lower(), f"uv sync --inexact --package {name}{extra}")
    there = {name: number for name in wanted if (number := _version(name))}
    for name in sorted(wanted):
        if name in there:
            yield f"{name:18} {there[name]}"
        # One cupy serves; the others are for other versions of the driver.
        elif not (name.startswith("cupy") and any(n.startswith("cupy") for n in there)):
            yield f"{name:18} not installed. {wanted[name]}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# ---- drivers -------------------------------------------------------------------------------------


def drivers() -> Iterator[str]:
    """Say which drivers answer."""
    yield f"NVIDIA: {_nvidia()}"
    yield f"OpenCL: {_opencl()}"


def _nvidia() -> str:
    try:
        library = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return "no driver found. Needed for CUDA devices only; it comes from the GPU's maker."
    number = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return "a driver is installed and does not answer. Reinstall it."
    cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"
    code = library.cuInit(0)
    if code != 0:
        return f"driver for CUDA {cuda}, which finds no usable GPU (error {code} of cuInit)."
    library.cuDeviceGetCount(ctypes.byref(number))
    return f"driver for CUDA {cuda}, {number.value} GPU(s)"


def _opencl() -> str:
    if _version("pyopencl") is None:
        return "not asked, since pyopencl is not installed."
    try:
        # Its wheel brings a loader of its own, so the system's says little.
        platforms = load_object("pyopencl:get_platforms")()
        found = [(p.name, [d.name.strip() for d in p.get_devices()]) for p in platforms]
    except Exception as error:  # noqa: BLE001 -- whatever a driver does is what was asked for
        first = str(error).splitlines()[0] if str(error) else ""
        return f"no platform answers ({type(error).__name__}: {first}). Install a driver, or PoCL."
    return "; ".join(f"{name}: {', '.join(there) or 'no device'}" for name, there in found)


# ---- plugins and devices -------------------------------------------------------------------------


def plugins(problems: list[str]) -> Iterator[str]:
    """Import every plugin of every group and say how it went."""
    for group in GROUPS:
        for name in group.names():
            try:
                group.load(name)
            except BurnError as error:
                problems.append(str(error))
        for info in group.infos():
            origin = f"{info.distribution} {info.version}"
            yield f"{group.group:20} {info.name:12} {origin:24} {info.status.partition(':')[0]}"


def devices(problems: list[str]) -> Iterator[str]:
    """Name the devices, the broken backends, and the default with its reason."""
    found = Device.enumerate()
    for device in found:
        backend = device.resource.backend
        says = "are recorded" if backend.records else "run at once"
        if backend.records:
            off = "BURN_NATIVE is off" if os.environ.get("BURN_NATIVE", "on") == "off" else None
            why = off or backend.uncompiled()
            says += f", by Python functions: {why}" if why else ", frequent ones by native code"
        yield f"{device.name:18} operations {says}"
    for name, error in found.broken.items():
        if _lacks_library(name, error):
            yield f"{name}: not usable: {error}"
            continue
        yield f"{name}: broken: {error.rule}"
        if str(error) not in problems:
            problems.append(str(error))
    try:
        yield f"default: {Device.default().name}"
    except BurnError as error:
        yield "default: none"
        problems.append(str(error))
    with suppress(BurnError):
        for line in device_report().splitlines():
            yield f"  {line}"


def _lacks_library(name: str, error: BurnError) -> bool:
    """Return whether a backend itself is whole and only an optional library is not installed."""
    loaded = any(info.name == name and info.status == "loaded" for info in BACKENDS.infos())
    return loaded and isinstance(error.__cause__, ModuleNotFoundError)


# ---- settings and caches -------------------------------------------------------------------------


def settings() -> Iterator[str]:
    """Show the environment variables that change anything."""
    names = sorted(name for name in os.environ if name.startswith("BURN_"))
    for name in names:
        yield f"{name}={os.environ[name]}"
    if not names:
        yield "no BURN_ variable is set"


def caches() -> Iterator[str]:
    """Say where compiled kernels are kept and how much they take."""
    wanted = os.environ.get("BURN_CACHE_DIR")
    if wanted == "off":
        yield "off, by BURN_CACHE_DIR"
        return
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(wanted) if wanted else (Path(base) if base else Path.home() / ".cache") / "burn"
    if not folder.is_dir():
        yield f"{folder}: nothing there yet"
        return
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    writable = "" if os.access(folder, os.W_OK) else ", not writable: nothing is kept"
    yield f"{folder}: {len(sizes)} file(s), {sum(sizes) / 2**20:.1f} MiB{writable}"
