"""Several devices, moves between them with gradients, and the choice of the default one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from itertools import permutations
from typing import Any

import pytest

import burn

DEVICES = ("flex", "flex:1", "fusion-flex", "cpu", "eager-cpu")


@pytest.mark.parametrize(("a", "b", "c"), list(permutations(DEVICES, 3)))
def test_gradients_flow_across_moves(a: str, b: str, c: str) -> None:
    x = burn.tensor([1.0, 2.0], device=burn.device(a).autodiff()).require_grad()
    y = (x * x).to_device(burn.device(b))
    z = (y * 3).to_device(burn.device(c))
    back = (z.sin() + z).to_device(burn.device(a))
    assert back.device == burn.device(a)
    grads = (back * x).sum().backward()
    import math

    expected = [
        6 * v * (math.cos(3 * v * v) + 1) * v + math.sin(3 * v * v) + 3 * v * v for v in (1.0, 2.0)
    ]
    assert x.grad(grads).device == x.device
    assert x.grad(grads).tolist() == pytest.approx(expected, rel=1e-5)


def test_second_order_flows_across_moves() -> None:
    x = burn.tensor([2.0], device=burn.device("flex").autodiff()).require_grad()
    y = (x * x).to_device(burn.device("fusion-flex"))
    grads = (y * y).sum().backward(create_graph=True)
    slope = x.grad(grads)
    assert slope.tolist() == [32]
    assert x.grad(slope.sum().backward()).tolist() == [48]


def test_a_plain_tensor_takes_the_devices_context() -> None:
    x = burn.ones(2, device=burn.device("flex"))
    moved = x.to_device(burn.device("fusion-flex").autodiff())
    assert moved.is_autodiff()
    assert not moved.is_tracked()


def test_devices_compare_by_resource(device: Any) -> None:
    assert device == device.autodiff() == burn.device(device.name)
    assert hash(device) == hash(device.autodiff())
    assert device.autodiff().autodiff().is_autodiff()
    assert not device.autodiff().without_autodiff().is_autodiff()
    with pytest.raises(burn.DeviceError):
        device.gradient_checkpointing()


def test_with_device_sets_the_default_of_a_block(device: Any) -> None:
    with device.autodiff():
        assert burn.zeros(1).device == device
        assert burn.zeros(1).is_autodiff()


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )


SAYS = "import burn; print(burn.zeros(1).device)"


PRINTED = {
    "flex": "flex", "flex:1": "flex:1", "fusion-flex": "fusion<flex>", "cpu": "cpu",
    "fusion-cpu:1": "cpu:1", "eager-cpu": "eager<cpu>", "eager-cpu:1": "eager<cpu>:1",
    "eager-flex": "flex",
}  # fmt: skip


@pytest.mark.parametrize("name", list(PRINTED))
def test_burn_device_names_the_default(name: str) -> None:
    done = run(SAYS, BURN_DEVICE=name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == PRINTED[name]


def test_the_compiling_devices_have_their_names() -> None:
    assert burn.Device.cpu() == burn.device("cpu") == burn.device("cpu:0")
    assert burn.Device.cpu(1) == burn.device("cpu:1") != burn.Device.cpu()
    found = burn.Device.enumerate(burn.DeviceFilter("opencl"))
    assert not found or burn.Device.opencl(0) == found[0]
    with pytest.raises(burn.BurnError, match="opencl"):
        burn.Device.opencl(len(found) + 90)


def test_a_compiling_device_is_recorded_whatever_it_is_called() -> None:
    cpu, eager = burn.device("cpu"), burn.device("eager-cpu")
    assert cpu.resource is burn.device("fusion-cpu").resource is burn.Device.cpu().resource
    assert cpu.name == burn.device("fusion-cpu:0").name == "cpu"
    assert cpu.resource.backend.records
    assert eager != cpu
    assert not eager.resource.backend.records
    assert cpu in burn.Device.enumerate(burn.DeviceFilter("cpu"))
    assert burn.device("eager-flex") == burn.device("flex")
    for device in (cpu, eager, burn.device("cpu:1").autodiff(), eager.autodiff()):
        again = pickle.loads(pickle.dumps(device))
        assert again == device
        assert repr(again) == repr(device)
    burn.manual_seed(3)
    first = burn.rand(4, device="fusion-cpu")
    burn.manual_seed(3)
    assert (first == burn.rand(4, device="cpu")).all().item()
    assert (first + burn.ones(4, device="fusion-cpu")).device == cpu
    with pytest.raises(burn.DeviceError, match="got cpu and eager<cpu>"):
        first + burn.ones(4, device=eager)
    assert first.to_device(eager).device == eager


def test_import_and_a_device_of_flex_load_neither_recorder_nor_kernels() -> None:
    code = (
        "import sys, burn; burn.Device.flex()\n"
        "print([m for m in ('burn_fusion', 'burn_cube_backend', 'burn_cube') if m in sys.modules])"
    )
    assert run(code, BURN_DEVICE="").stdout.strip() == "[]"


def test_burn_device_unknown_says_what_there_is() -> None:
    done = run(SAYS, BURN_DEVICE="flux")
    assert done.returncode != 0
    assert "BackendLoadError" in done.stderr
    assert "flex" in done.stderr.splitlines()[-1]


def test_burn_device_not_installed_names_the_package() -> None:
    done = run(SAYS, BURN_DEVICE="cuda")
    assert done.returncode != 0
    assert "burn-cube-backend" in done.stderr


def test_without_burn_device_the_first_usable_is_taken() -> None:
    done = run(SAYS, BURN_DEVICE="")
    assert done.stdout.strip() == "cpu"
