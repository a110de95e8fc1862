"""Files that PyTorch 2.13 wrote (`data/make_torch_files.py`), and the module cases."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import burn_store as store
from burn_std import StoreError
from burn_store.torch_tree import part

DATA = Path(__file__).parent / "data"
CASES = Path(__file__).parents[3] / "tests" / "cases" / "modules"
EXPECTED = np.load(DATA / "expected.npz")
FILES = sorted({key.partition(":")[0] for key in EXPECTED.files})


def raw(array: np.ndarray) -> np.ndarray:
    return array.view(np.int16) if array.dtype.name == "bfloat16" else array


@pytest.mark.parametrize("name", FILES)
def test_tensors_are_pytorchs(name: str) -> None:
    expected = {
        k.partition(":")[2]: EXPECTED[k] for k in EXPECTED.files if k.startswith(f"{name}:")
    }
    options = {"unknown": "inert"} if name.startswith("module") else {}
    with store.open(DATA / name, **options) as file:
        assert set(file) == set(expected)
        for key, wanted in expected.items():
            got = raw(file.numpy(key))
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), key
            assert file.shape(key) == wanted.shape
            assert got.tobytes() == wanted.tobytes(), key
            assert got.flags.c_contiguous


def test_every_module_case_is_read() -> None:
    digests = json.loads((DATA / "module_digests.json").read_text())
    assert {p.stem for p in CASES.glob("*.pt")} == set(digests)
    for case, tensors in digests.items():
        with store.open(CASES / f"{case}.pt") as file:
            assert list(file) == list(tensors), case
            for key, (dtype, shape, digest) in tensors.items():
                got = file.numpy(key)
                assert (got.dtype.name, list(got.shape)) == (dtype, shape), (case, key)
                assert hashlib.sha256(got.tobytes()).hexdigest() == digest, (case, key)


@pytest.mark.parametrize("name", ["checkpoint_zip.pt", "checkpoint_legacy.pt", "protocol5.pt"])
def test_what_is_beside_the_tensors_is_listed(name: str) -> None:
    with store.open(DATA / name) as file:
        assert file.extra["epoch"] == 7
        assert file.extra["args.width"] == 4
        assert file.extra["note"] is None
        assert "history.0" not in file.extra
        assert file.aliases == {"model.tied": "model.weight"}
        assert "optim.state.0.exp_avg" in file


@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_a_part_of_a_checkpoint_by_key(kind: str) -> None:
    with store.open(DATA / f"checkpoint_{kind}.pt", key="model") as file:
        assert list(file) == ["weight", "bias", "tied"]
    with store.open(DATA / f"checkpoint_{kind}.pt", key="optim.state.0") as file:
        assert list(file) == ["step", "exp_avg"]
    with pytest.raises(StoreError, match=r"no 'modle' in the file; got keys epoch, lr"):
        store.open(DATA / f"checkpoint_{kind}.pt", key="modle")


def test_a_key_may_stand_in_the_names() -> None:
    # What data-parallel training saves: `module.` is in the names, and no mapping of its own.
    flat = {"module.a": 1, "module.b.c": 2, "modules.a": 3}
    assert part(flat, "module") == {"a": 1, "b.c": 2}
    assert part({"model": flat}, "model.module") == {"a": 1, "b.c": 2}
    assert part({**flat, "module": {"d": 4}}, "module") == {"d": 4}
    with pytest.raises(StoreError, match="no 'modul' in the file"):
        part(flat, "modul")


def test_a_whole_module_is_refused_by_name_or_read_as_names() -> None:
    with pytest.raises(StoreError, match=r"torch\.nn\.modules\.container\.Sequential.*state_dict"):
        store.open(DATA / "module_zip.pt")
    with store.open(DATA / "module_zip.pt", unknown="inert") as file:
        assert "0.weight" in file


def test_the_format_is_found_by_content(tmp_path: Path) -> None:
    misnamed = tmp_path / "weights.safetensors"
    misnamed.write_bytes((DATA / "tensor_zip.pt").read_bytes())
    with store.open(misnamed) as file:
        assert list(file) == ["tensor"]
    with pytest.raises(StoreError, match=r"not of format safetensors.*Pass format='torch'"):
        store.open(misnamed, format="safetensors")


def test_pytorchs_format_is_only_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"only read.*safetensors"):
        store.save_tensors({}, tmp_path / "a.pt")
    assert list(tmp_path.iterdir()) == []


def test_options_are_checked() -> None:
    with pytest.raises(StoreError, match=r"no option 'keys'.*key, unknown"):
        store.open(DATA / "tensor_zip.pt", keys="a")
    with pytest.raises(StoreError, match="max_items is a positive integer"):
        store.open(DATA / "tensor_zip.pt", max_items=0)
    with pytest.raises(StoreError, match="at most 10 opcodes"):
        store.open(DATA / "tensor_zip.pt", max_items=10)
