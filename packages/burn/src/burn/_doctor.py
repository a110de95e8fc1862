"""What `python -m burn doctor` finds: versions, drivers, devices, plugins, caches, problems.

Every look asks one thing and answers in lines; a look that fails is a finding, never the end of
the report. Drivers are asked here and nowhere at import.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from burn_dispatch import BACKENDS, DECORATORS, Device, device_report
from burn_std import BurnError, PluginGroup
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
# Of others: distribution names (any of them will do), what for, and how to get it.
THIRD_PARTY = [
    (("numpy",), "the flex device", "uv sync --package burn-flex"),
    (("ml-dtypes",), "bfloat16", "uv sync --package burn-flex"),
    (("safetensors",), "safetensors files", "uv sync --package burn-store"),
    (("rich",), "the progress bar of a training", "uv sync --package burn-train"),
    (("llvmlite",), "compiled kernels on the CPU", "uv sync --package burn-cube --group dev"),
    (("pyopencl",), "compiled kernels on OpenCL", "uv sync --package burn-cube --group dev"),
    (
        ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
        "compiled kernels on NVIDIA GPUs",
        "uv sync --package burn-cube --extra cuda13, or cuda12 for an older driver",
    ),
]


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
    found = {
        name: dist.version
        for dist in distributions()
        if (name := dist.name.lower()) == "burn" or name.startswith("burn-")
    }
    for name in sorted(found):
        yield f"{name:18} {found[name]}"
    for name, purpose in OPTIONAL.items():
        if name not in found:
            yield f"{name:18} not installed: {purpose}. uv sync --package {name}"


def libraries() -> Iterator[str]:
    """Name the libraries that packages build on, and how to get those that are not here."""
    for names, purpose, remedy in THIRD_PARTY:
        found = next((pair for name in names if (pair := _version(name))), None)
        if found:
            yield f"{found[0]:18} {found[1]}"
        else:
            yield f"{names[0]:18} not installed: {purpose}. {remedy}"


def _version(name: str) -> tuple[str, str] | None:
    try:
        return name, version(name)
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
        cl = importlib.import_module("pyopencl")
        found = [(p.name, [d.name.strip() for d in p.get_devices()]) for p in cl.get_platforms()]
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
        yield device.name
    for name, error in found.broken.items():
        yield f"{name}: {error.rule}"
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
