"""One name for everything: what is there at once, and what comes when it is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

import burn


def test_every_public_name_is_there() -> None:
    for name in burn.__all__:
        assert getattr(burn, name) is not None
    assert burn.__all__ == sorted(burn.__all__)


def test_dtypes_are_named() -> None:
    assert burn.zeros(1).dtype is burn.float32
    assert burn.tensor([True]).dtype is burn.bool_
    assert burn.tensor(1).dtype is burn.int64


def test_parts_load_when_named() -> None:
    code = (
        "import sys, burn; before = 'burn_train' in sys.modules; burn.train;"
        "print(before, 'burn_train' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_an_unknown_name_has_a_hint() -> None:
    with pytest.raises(AttributeError, match=r"burn\.zeros"):
        burn.zeroes  # noqa: B018
    with pytest.raises(AttributeError, match=r"burn\.store\.save\(model, path\)"):
        burn.save  # noqa: B018
    assert "train" in dir(burn)


@pytest.mark.parametrize(
    "line",
    [
        "from burn.core.init import kaiming_uniform_",
        "from burn.dataset.augment import RandomCrop",
        "from burn.nn.init import xavier_uniform_",
        "from burn.nn.parametrizations import weight_norm",
        "from burn.nn.rnn import pack_padded_sequence",
        "from burn.optim.lr_scheduler import StepLR",
    ],
)
def test_submodules_can_be_imported(line: str) -> None:
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("part", "name", "hint"),
    [
        ("dataset", "random_split", r"split\(data"),
        ("dataset", "ArayDataset", "burn.dataset.ArrayDataset"),
        ("optim", "clip_grad_norm_", r"clip_grad_norm\(model, grads"),
        ("optim", "AdmW", "burn.optim.AdamW"),
    ],
)
def test_an_unknown_name_of_a_part_has_a_hint(part: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(getattr(burn, part), name)
