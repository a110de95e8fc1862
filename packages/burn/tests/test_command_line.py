"""`python -m burn`: what it prints, and its exit status."""

from __future__ import annotations

import ctypes
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import burn
from burn import BackendLoadError, _doctor
from burn.__main__ import main
from burn_std import PluginInfo


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert "flex" in out.splitlines()
    assert "default: " in out


def test_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"flex +burn-flex \S+ +loaded", out)
    assert re.search(r"autodiff +burn-autodiff", out)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("matmul", ["entry", "shape rule", "method", "linalg", "kernel (flex)", "backward"]),
        ("relu", ["entry", "decomposition", "method", "functional", "backward"]),
        ("conv2d", ["functional"]),
        ("cat", ["entry", "function", "backward"]),
        ("conv", ["functional.conv1d", "functional.conv3d", "kernel (flex)"]),
    ],
)
def test_where_names_files_and_lines(
    name: str, labels: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = dict(re.split(r"  +", line, maxsplit=1) for line in lines)
    for label in labels:
        assert re.search(r"\.py:\d+$", found[label]), label


@pytest.mark.parametrize(
    ("name", "file"),
    [("conv", "kernels/conv.py"), ("silu", "kernels/activation.py"), ("sum", "kernels/reduce.py")],
)
def test_where_looks_through_what_makes_kernels(
    name: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["where", name])
    assert re.search(rf"kernel \(flex\).*{file}:\d+", capsys.readouterr().out)


def test_where_takes_modes_for_no_names(capsys: pytest.CaptureFixture[str]) -> None:
    main(["where", "add"])
    samples = capsys.readouterr().out.splitlines()[-1]
    assert samples.startswith("samples")
    assert "index.py" not in samples


def test_where_of_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "matmull"]) == 1
    assert "matmul" in capsys.readouterr().out


def sections(text: str) -> dict[str, list[str]]:
    """The report by heading."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("  "):
            found[title].append(line.strip())
        else:
            title = line.partition(":")[0]
            found[title] = []
    return found


def test_doctor_reports_everything_and_counts_problems(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor"])
    out = capsys.readouterr().out
    report = sections(out)
    assert list(report) == [
        "machine", "packages", "libraries", "drivers", "plugins", "devices", "settings", "caches",
        "problems",
    ]  # fmt: skip
    assert any(line.startswith("burn-flex ") for line in report["packages"])
    assert any(line.startswith("numpy ") for line in report["libraries"])
    assert any(re.search(r"flex +burn-flex \S+ +loaded", line) for line in report["plugins"])
    assert any(re.fullmatch(r"flex +operations run at once", d) for d in report["devices"])
    assert status == (1 if report["problems"] else 0)
    assert f"problems: {len(report['problems'])}" in out


def test_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_doctor, "version", nothing)
    lines = list(_doctor.libraries())
    assert all("not installed. uv sync --inexact --package burn" in line for line in lines)
    assert any(line.split()[0] == "numpy" for line in lines)


def test_doctor_names_the_extra_of_an_optional_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dist:
        name, version = "burn-acme", "0.1.0"
        requires = [
            "burn-std==0.1.0",
            "acmelib",
            'cupy-cuda12x ; extra == "cuda12"',
            'cupy-cuda13x ; extra == "cuda13"',
        ]

    def known(name: str) -> str:
        if name == "cupy-cuda12x":
            return "14.2.0"
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_doctor, "distributions", lambda: [Dist()])
    monkeypatch.setattr(_doctor, "version", known)
    assert list(_doctor.libraries()) == [
        "acmelib            not installed. uv sync --inexact --package burn-acme",
        "cupy-cuda12x       14.2.0",
    ]
    monkeypatch.setattr(_doctor, "version", lambda name: known("none"))
    second = list(_doctor.libraries())[1]
    assert second.endswith("uv sync --inexact --package burn-acme --extra cuda12")


def test_doctor_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert "no driver found" in next(_doctor.drivers())


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({"cuDriverGetVersion": 999}, "does not answer"),
        ({"cuInit": 100}, "no usable GPU (error 100"),
        ({}, "CUDA 13.1, 2 GPU(s)"),
    ],
)
def test_doctor_asks_the_driver(
    codes: dict[str, int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Driver:
        def __getattr__(self, name: str) -> object:
            def call(*args: object) -> int:
                if name != "cuInit":
                    args[0]._obj.value = 13010 if name == "cuDriverGetVersion" else 2  # type: ignore[attr-defined]
                return codes.get(name, 0)

            return call

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    assert said in next(_doctor.drivers())


class Backends:
    """One backend that loads."""

    def infos(self) -> list[PluginInfo]:
        return [PluginInfo("acme", "burn-acme", "0.1.0", "acme:plugin", "loaded")]


@pytest.mark.parametrize("cause", [ModuleNotFoundError("no acmelib"), OSError("ioctl failed")])
def test_doctor_tells_a_missing_library_from_a_fault(
    cause: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = BackendLoadError("acme", "acmelib is installed", remedy="Install acmelib.")
    error.__cause__ = cause
    found = burn.Device.enumerate(burn.DeviceFilter("flex"))
    found.broken["acme"] = error
    monkeypatch.setattr(_doctor.Device, "enumerate", lambda: found)
    monkeypatch.setattr(_doctor, "BACKENDS", Backends())
    problems: list[str] = []
    lines = [line for line in _doctor.devices(problems) if line.startswith("acme")]
    if isinstance(cause, ModuleNotFoundError):
        assert lines == [f"acme: not usable: {error}"]
        assert problems == []
    else:
        assert lines == ["acme: broken: acmelib is installed"]
        assert problems == [str(error)]


def test_doctor_shows_settings_and_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURN_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").write_bytes(b"x" * 2**20)
    assert f"BURN_CACHE_DIR={tmp_path}" in list(_doctor.settings())
    assert list(_doctor.caches()) == [f"{tmp_path}: 1 file(s), 1.0 MiB"]
    monkeypatch.setenv("BURN_CACHE_DIR", str(tmp_path / "new"))
    assert list(_doctor.caches()) == [f"{tmp_path / 'new'}: nothing there yet"]
    monkeypatch.setenv("BURN_CACHE_DIR", "off")
    assert list(_doctor.caches()) == ["off, by BURN_CACHE_DIR"]
