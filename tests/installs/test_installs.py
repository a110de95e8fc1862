"""Wheels in empty environments, without an index: a person installs only what they need."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

import pytest

from tests.environments import ROOT, Environment, build_wheels

NAMES = sorted(path.name for path in (ROOT / "packages").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("lone") / "env")
    environment.install_third_party("numpy", "ml-dtypes")
    environment.install("burn-tensor", "burn-flex", wheels=[wheels])
    return environment


def test_every_package_makes_a_typed_wheel(wheels: Path) -> None:
    for name in NAMES:
        module = name.replace("-", "_")
        (wheel,) = wheels.glob(f"{module}-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{module}/py.typed" in names
        assert not [n for n in names if "tests" in Path(n).parts]


def test_tensor_and_flex_alone_give_working_tensors(lone: Environment) -> None:
    code = "from burn_tensor import tensor; x = tensor([[1.0, 2.0]]); print((x @ x.t()).tolist())"
    assert lone.says(code) == "[[5.0]]"


def test_gradients_without_autodiff_name_the_package(lone: Environment) -> None:
    done = lone.run("-c", "from burn_dispatch import Device; Device.default().autodiff()")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "BackendLoadError" in last
    assert "burn-autodiff" in last


def test_adding_autodiff_gives_gradients(tmp_path: Path, lone: Environment, wheels: Path) -> None:
    lone.install("burn-autodiff", wheels=[wheels])
    try:
        code = (
            "from burn_dispatch import Device\n"
            "from burn_tensor import tensor\n"
            "x = tensor([3.0], device=Device.default().autodiff()).require_grad()\n"
            "print(x.grad((x * x).sum().backward()).tolist())"
        )
        assert lone.says(code) == "[6.0]"
    finally:
        lone.uninstall("burn-autodiff")


def test_the_facade_brings_everything(tmp_path: Path, wheels: Path) -> None:
    environment = Environment(tmp_path / "env")
    environment.install_needs_of("burn")
    environment.install("burn", wheels=[wheels])
    code = (
        "import burn\n"
        "from burn import nn, optim\n"
        "model = nn.Linear(2, 1, device=burn.Device.default().autodiff())\n"
        "loss = model(burn.ones(4, 2)).sum()\n"
        "optim.SGD(lr=0.1).step(model, loss.backward())\n"
        "print(model.weight.shape)"
    )
    assert environment.says(code) == "(1, 2)"
    listed = environment.run("-m", "burn", "backends")
    assert listed.returncode == 0, listed.stderr
    assert "flex" in listed.stdout
    assert "burn-testing" not in listed.stdout


# What is not ours of each extra; those of CUDA are gigabytes, so their wheels are read only.
EXTRAS = {
    "cpu": {"llvmlite"},
    "opencl": {"pyopencl"},
    "cuda12": {"cupy-cuda12x"},
    "cuda13": {"cupy-cuda13x"},
    "cudnn": {"nvidia-cudnn-frontend"},
}


def test_every_extra_stands_by_itself(tmp_path: Path, wheels: Path) -> None:
    (wheel,) = wheels.glob("burn-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(archive.read(name))
    assert set(said.get_all("Provides-Extra", [])) == EXTRAS.keys()
    needs = said.get_all("Requires-Dist", [])
    for extra, foreign in EXTRAS.items():
        own = {re.split(r"[\s=<>;\[]", n)[0] for n in needs if f"extra == '{extra}'" in n}
        assert own == {"burn-cube-backend"} | foreign, extra
    environment = Environment(tmp_path / "env")
    environment.install_needs_of("burn")
    listed = "from importlib.metadata import distributions as d; print([x.name for x in d()])"
    for extra in ("cpu", "opencl"):
        environment.install_third_party(*EXTRAS[extra])
        environment.install(f"burn[{extra}]", wheels=[wheels])
        assert not re.search("cupy|nvidia", environment.says(listed))
        # With no driver at all the device is left out, and nothing else is.
        report = environment.run("-m", "burn", "doctor", OCL_ICD_VENDORS=str(tmp_path))
        assert report.returncode == 0, report.stdout
        code = "import burn; print((burn.ones(2, 3) * 2).sum().item(), burn.Device.default())"
        assert environment.says(code, OCL_ICD_VENDORS=str(tmp_path)) == "12.0 cpu"
