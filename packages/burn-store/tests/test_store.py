"""The front: saving, loading, reports, names, dtypes, tied tensors, shards, crashes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_store as store
import burn_tensor as bt
from burn_core import Buffer, Module, Parameter
from burn_std import DTypeError, StoreError
from burn_std.dtypes import bfloat16, bool_, float16, float32, int32, int64
from burn_store.elements import NATIVE

WRITTEN = ("safetensors", "bpk", "npz")


class Linear(Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        self.weight = Parameter(bt.randn(n_out, n_in))
        self.bias = Parameter(bt.randn(n_out))


class BatchNorm1d(Module):
    def __init__(self, n: int) -> None:
        self.weight = Parameter(bt.randn(n))
        self.bias = Parameter(bt.randn(n))
        self.running_mean = Buffer(bt.randn(n))
        self.num_batches_tracked = Buffer(bt.tensor(5))
        self.scratch = Buffer(bt.zeros(2), persistent=False)


class Net(Module):
    def __init__(self) -> None:
        self.layers = [Linear(3, 4), BatchNorm1d(4)]
        self.head = Linear(4, 2)


class Tied(Module):
    def __init__(self) -> None:
        self.embed = Parameter(bt.randn(5, 3))
        self.body = Linear(3, 3)
        self.head = self.embed


class Untied(Module):
    def __init__(self) -> None:
        self.embed = Parameter(bt.randn(5, 3))
        self.body = Linear(3, 3)
        self.head = Parameter(bt.randn(5, 3))


def same(a: Module, b: Module) -> bool:
    x, y = a.state_dict(), b.state_dict()
    return list(x) == list(y) and all(np.array_equal(x[k].numpy(), y[k].numpy()) for k in x)


# ---- round trips -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_model_round_trips(suffix: str, tmp_path: Path) -> None:
    model, other = Net(), Net()
    path = tmp_path / f"m.{suffix}"
    store.save(model, path, metadata={"step": "12", "note": "é"})
    report = store.load(other, path)
    assert report.complete
    assert same(model, other)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with store.open(path) as file:
        assert file.metadata == {"step": "12", "note": "é"}
        assert "layers.1.scratch" not in file


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("dtype", sorted(NATIVE))
def test_every_dtype_and_odd_shapes_round_trip(suffix: str, dtype: str, tmp_path: Path) -> None:
    from burn_std import parse_dtype

    kind = parse_dtype(dtype)
    base = bt.arange(24).reshape(4, 6).to(kind)
    tensors = {
        "plain": base,
        "transposed": base.transpose(0, 1),
        "stepped": base[::2, ::-1],
        "scalar": base[1, 1],
        "empty": base[:0],
        "a/b c": base[0],
    }
    path = tmp_path / f"t.{suffix}"
    store.save_tensors(tensors, path)
    with store.open(path) as file:
        assert set(file) == set(tensors)
        assert len(file) == len(tensors)
        for name, t in tensors.items():
            assert file.dtype(name) is kind
            assert file[name].dtype is kind
            assert file.shape(name) == tuple(t.shape)
            assert np.array_equal(file[name].numpy(), t.numpy()), name


@pytest.mark.parametrize("suffix", WRITTEN)
def test_no_tensors_and_no_metadata(suffix: str, tmp_path: Path) -> None:
    store.save_tensors({}, tmp_path / f"t.{suffix}")
    with store.open(
        tmp_path / f"t.{suffix}", format={"bpk": "burnpack"}.get(suffix, suffix)
    ) as file:
        assert list(file) == []


def test_the_library_of_the_format_reads_and_writes_the_same(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    model = Net()
    store.save(model, tmp_path / "a.safetensors", metadata={"k": "v"})
    read = library.load_file(tmp_path / "a.safetensors")
    assert {k: v.tolist() for k, v in read.items()} == {
        k: v.tolist() for k, v in model.state_dict().items()
    }
    library.save_file(read, tmp_path / "b.safetensors", metadata={"k": "v"})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_numpy_reads_and_writes_the_same(tmp_path: Path) -> None:
    tensors = {"w": bt.randn(3, 4), "i": bt.arange(5)}
    store.save_tensors(tensors, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as read:
        assert {k: read[k].tolist() for k in read.files} == {
            k: t.tolist() for k, t in tensors.items()
        }
    arrays = {
        "w": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "b": np.arange(3).astype(">i4"),
        "s": np.float16(2),
    }
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "b.npz", **arrays)
        with store.open(tmp_path / "b.npz") as file:
            file.verify()
            assert {k: file[k].tolist() for k in file} == {k: v.tolist() for k, v in arrays.items()}


def test_equal_tensors_make_equal_files(tmp_path: Path) -> None:
    model = Net()
    for suffix in WRITTEN:
        for name in "ab":
            store.save(model, tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_the_device_of_a_model_and_its_gradients_stay(tmp_path: Path) -> None:
    from burn_dispatch import Device

    device = Device.default().autodiff()
    model = Net().to_device(device)
    store.save(model, tmp_path / "m.safetensors")
    parameters = list(model.parameters())
    store.load(model, tmp_path / "m.safetensors")
    assert all(
        a is b and a.b.is_autodiff for a, b in zip(parameters, model.parameters(), strict=True)
    )
    loss = (model.head.weight * 2).sum()
    assert model.head.weight.grad(loss.backward()).tolist() == [[2.0] * 4] * 2


# ---- what does not fit -------------------------------------------------------------------------


def test_a_strict_load_says_everything_and_changes_nothing(tmp_path: Path) -> None:
    model = Net()
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    tensors = dict(model.state_dict())
    tensors["head.wieght"] = tensors.pop("head.weight")
    tensors["layers.0.bias"] = bt.zeros(9)
    path = tmp_path / "m.safetensors"
    store.save_tensors(tensors, path)
    with pytest.raises(StoreError) as caught:
        store.load(model, path)
    message = str(caught.value)
    assert "missing head.weight (did you mean head.wieght?)" in message
    assert "unused head.wieght" in message
    assert "layers.0.bias is float32[9] in the file, float32[4] here" in message
    assert "strict=False" in message
    assert all(np.array_equal(before[k], v.numpy()) for k, v in model.state_dict().items())
    report = store.load(model, path, strict=False)
    assert report.missing == ["head.weight"]
    assert report.unused == ["head.wieght"]
    assert list(report.mismatched) == ["layers.0.bias"]
    assert report.did_you_mean() == {"head.weight": "head.wieght"}
    assert not report.complete
    assert "missing=['head.weight']" in repr(report)


def test_partial_loads(tmp_path: Path) -> None:
    model, other = Net(), Net()
    path = tmp_path / "m.safetensors"
    store.save(
        model, path, include=r"^layers\.", exclude=["running", lambda p: p.endswith("tracked")]
    )
    with store.open(path) as file:
        assert sorted(file) == [
            "layers.0.bias",
            "layers.0.weight",
            "layers.1.bias",
            "layers.1.weight",
        ]
    with pytest.raises(StoreError, match=r"missing layers\.1\.running_mean"):
        store.load(other, path)
    report = store.load(other, path, allow_missing=True)
    assert len(report.applied) == 4
    report = store.load(other, path, include="^layers", exclude="running_mean|tracked")
    assert report.complete
    assert "head.weight" in report.skipped
    with pytest.raises(StoreError, match="unused layers"):
        store.load(model.head, path, allow_missing=True)
    assert store.load(model.head, path, allow_missing=True, allow_unused=True).applied == []


def test_renames_on_both_sides(tmp_path: Path) -> None:
    model, other = Net(), Net()
    path = tmp_path / "m.npz"
    store.save(model, path, rename=[(r"^", "module."), (r"layers\.(\d)", r"blocks_\1")])
    with store.open(path) as file:
        assert "module.blocks_0.weight" in file
    store.load(other, path, rename=[(r"^module\.", ""), (r"blocks_(\d)", r"layers.\1")])
    assert same(model, other)
    store.load(
        other, path, rename=lambda n: n.removeprefix("module.").replace("blocks_", "layers.")
    )
    with pytest.raises(StoreError, match="both become x"):
        store.load(other, path, rename=lambda n: "x")
    with pytest.raises(StoreError, match="regular expression"):
        store.load(other, path, rename=[("(", "")])
    with pytest.raises(StoreError, match="replacement fits"):
        store.load(other, path, rename=[("a", r"\9")])


def test_prefixes_and_keys_are_suggested(tmp_path: Path) -> None:
    model = Net()
    path = tmp_path / "m.safetensors"
    store.save(model, path, rename=[("^", "module.")])
    with pytest.raises(StoreError, match=r"pass rename=\[\('\^module\\\\\.', ''\)\]"):
        store.load(model, path)
    store.save(model.head, path)
    with pytest.raises(StoreError, match=r"pass rename=\[\('\^', 'head\.'\)\]"):
        store.load(model, path, include="head")


def test_gaps_in_indices_are_closed(tmp_path: Path) -> None:
    model, other = Net(), Net()
    path = tmp_path / "m.safetensors"
    store.save(model, path, rename=[(r"layers\.1", "layers.4")])
    with store.open(path) as file:
        rename = store.contiguous_indices(file)
    store.load(other, path, rename=rename)
    assert same(model, other)


# ---- dtypes ------------------------------------------------------------------------------------


def test_the_dtype_of_the_model_or_of_the_file(tmp_path: Path) -> None:
    model = Net().to_dtype(bfloat16)
    path = tmp_path / "m.safetensors"
    store.save(model, path)
    other = Net()
    store.load(other, path)
    assert other.head.weight.dtype is float32
    assert np.array_equal(other.head.weight.numpy(), model.head.weight.numpy().astype(np.float32))
    identity = other.head.weight
    store.load(other, path, dtype="file")
    assert other.head.weight is identity
    assert other.head.weight.dtype is bfloat16
    assert other.layers[1].running_mean.dtype is bfloat16
    assert other.layers[1].num_batches_tracked.dtype is int64
    store.load(other, path, dtype=float16)
    assert other.layers[1].running_mean.dtype is float16
    assert not same(Net(), Net())
    with pytest.raises(StoreError, match="float dtype"):
        store.load(other, path, dtype=int32)
    with pytest.raises(StoreError, match="'model', 'file'"):
        store.load(other, path, dtype="half")


@pytest.mark.parametrize(
    ("wanted", "there", "fits"),
    [
        (float32, int64, False),
        (int64, float32, False),
        (int64, int32, True),
        (int32, int64, False),
        (bool_, int64, False),
        (int64, bool_, False),
        (float16, float32, True),
    ],
)
def test_kinds_are_not_cast(wanted: Any, there: Any, fits: bool, tmp_path: Path) -> None:
    class One(Module):
        def __init__(self) -> None:
            self.x = Buffer(bt.zeros(2).to(wanted))

    store.save_tensors({"x": bt.ones(2).to(there)}, tmp_path / "x.safetensors")
    if fits:
        store.load(model := One(), tmp_path / "x.safetensors")
        assert model.x.dtype is wanted
        assert model.x.tolist() == [1, 1]
    else:
        with pytest.raises(StoreError, match="not cast"):
            store.load(One(), tmp_path / "x.safetensors")


# ---- tied tensors ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITTEN)
def test_tied_tensors_are_saved_once_and_stay_tied(suffix: str, tmp_path: Path) -> None:
    model = Tied()
    path = tmp_path / f"m.{suffix}"
    store.save(model, path)
    with store.open(path) as file:
        assert file.aliases == {"head": "embed"}
        assert np.array_equal(file["head"].numpy(), file["embed"].numpy())
    tied = Tied()
    assert store.load(tied, path).complete
    assert tied.head is tied.embed
    assert same(tied, model)
    untied = Untied()
    report = store.load(untied, path)
    assert report.complete
    assert "head" in report.applied
    assert np.array_equal(untied.head.numpy(), model.embed.numpy())


def test_both_names_of_a_tied_tensor_must_hold_the_same(tmp_path: Path) -> None:
    model = Untied()
    path = tmp_path / "m.safetensors"
    store.save(model, path)
    with pytest.raises(StoreError, match=r"different tensors under these names in the file"):
        store.load(Tied(), path)
    model.head.set(model.embed.detach())
    store.save(model, path)
    assert store.load(tied := Tied(), path).complete
    assert np.array_equal(tied.head.numpy(), model.embed.numpy())


def test_tied_names_as_safetensors_torch_writes_them(tmp_path: Path) -> None:
    model = Tied()
    path = tmp_path / "m.safetensors"
    store.save_tensors(
        model.state_dict(),
        path,
        metadata={"head": "embed", "format": "pt"},
    )
    assert store.load(Untied(), path).complete


# ---- shards ------------------------------------------------------------------------------------


def test_shards_and_their_index(tmp_path: Path) -> None:
    model, other = Net(), Net()
    store.save(model, tmp_path / "model.safetensors", shard_size=50, metadata={"k": "v"})
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[-1] == "model.safetensors.index.json"
    assert names[0] == f"model-00001-of-{len(names) - 1:05d}.safetensors"
    index = json.loads((tmp_path / names[-1]).read_text())
    assert set(index["weight_map"]) == set(model.state_dict())
    assert index["metadata"]["total_size"] == sum(
        t.numpy().nbytes for t in model.state_dict().values()
    )
    assert store.load(other, tmp_path / names[-1], verify=True).complete
    assert same(model, other)
    (tmp_path / names[0]).unlink()
    with pytest.raises(StoreError, match="no such file"):
        store.open(tmp_path / names[-1])


def test_one_file_where_it_suffices(tmp_path: Path) -> None:
    store.save(Net(), tmp_path / "model.safetensors", shard_size=1 << 20)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    with pytest.raises(StoreError, match="positive number of bytes"):
        store.save(Net(), tmp_path / "model.safetensors", shard_size=0)


# ---- without a file, and records ----------------------------------------------------------------


@pytest.mark.parametrize("format", ["safetensors", "burnpack", "npz"])
def test_bytes_stand_in_place_of_a_file(format: str) -> None:
    model, other = Net(), Net()
    whole = store.to_bytes(model, format, metadata={"epoch": "3"})
    for data in (whole, bytearray(whole), memoryview(whole)):
        assert store.load(other, data).complete
    x, y = model.state_dict(), other.state_dict()
    assert all(np.array_equal(x[k].numpy(), y[k].numpy()) for k in x)
    with store.open(whole) as file:
        assert file.metadata["epoch"] == "3"
    for bad in (whole[:-1], whole[: len(whole) // 2], b"", b"nonsense"):
        with pytest.raises(StoreError):
            store.load(other, bad)


def test_bytes_of_an_index_have_no_files_beside_them() -> None:
    index = json.dumps({"weight_map": {"a": "a.safetensors"}}).encode()
    with pytest.raises(StoreError, match="no files beside"):
        store.open(index)


def test_a_record_keeps_ids_in_a_file(tmp_path: Path) -> None:
    model, other = Net(), Net()
    store.save_tensors(model.into_record(), tmp_path / "r.bpk")
    with store.open(tmp_path / "r.bpk") as file:
        record = file.record()
    assert record.ids == model.into_record().ids
    other.load_record(record)
    assert [p.id for p in other.parameters()] == [p.id for p in model.parameters()]


# ---- what a failure leaves ---------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Net()
    path = tmp_path / "m.safetensors"
    store.save(model, path)
    old = path.read_bytes()

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"could not be written.*No space left.*Free space"):
        store.save(Net(), path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_tensor_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.npz"
    store.save_tensors({"a": bt.ones(2)}, path)
    old = path.read_bytes()
    with pytest.raises(StoreError, match="no place for this name"):
        store.save_tensors({"a": bt.ones(2), "b\0": bt.ones(2)}, path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


_WRITER = """
import sys, burn_store, burn_tensor as bt
k = 0
while True:
    k += 1
    tensors = {"x": bt.full((500000,), float(k)), "y": bt.full((3,), float(k))}
    burn_store.save_tensors(tensors, sys.argv[1])
    print(k, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    with store.open(path) as file:
        assert file["x"].numpy().min() == file["x"].numpy().max() == file["y"].numpy()[0]


def test_overwriting_can_be_refused(tmp_path: Path) -> None:
    store.save_tensors({"a": bt.ones(1)}, tmp_path / "a.bpk")
    with pytest.raises(StoreError, match="there already"):
        store.save_tensors({"a": bt.ones(2)}, tmp_path / "a.bpk", overwrite=False)


def test_what_cannot_be_saved_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"no installed format has this file name ending; got a\.xyz.*burnpack"
    ):
        store.save_tensors({}, tmp_path / "a.xyz")
    with pytest.raises(StoreError, match="metadata is text"):
        store.save_tensors({}, tmp_path / "a.npz", metadata={"a": 1})  # type: ignore[dict-item]
    with pytest.raises(StoreError, match="a tensor has a name"):
        store.save_tensors({"": bt.ones(1)}, tmp_path / "a.npz")
    with pytest.raises(StoreError, match="could not be written"):
        store.save_tensors({}, tmp_path / "none" / "a.npz")
    with pytest.raises(StoreError, match="keeps this name"):
        store.save_tensors({"__metadata__": bt.ones(1)}, tmp_path / "a.safetensors")


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    store.save_tensors({"a": bt.ones(1)}, tmp_path / "a.npz")
    file = store.open(tmp_path / "a.npz")
    assert repr(file) == "TensorFile(1 tensors, 0.0 MB)"
    assert "a" in file
    assert "b" not in file
    with pytest.raises(KeyError):
        file["b"]
    file.close()
    file.close()
    with pytest.raises(StoreError, match="closed"):
        file["a"]


# ---- memory ------------------------------------------------------------------------------------


class Big(Module):
    def __init__(self) -> None:
        # On flex memory is what tracemalloc sees.
        self.parts = [Parameter(bt.zeros(256, 1024, device="flex")) for _ in range(16)]


@pytest.mark.parametrize("suffix", WRITTEN)
def test_loading_takes_one_tensor_more_than_the_model(suffix: str, tmp_path: Path) -> None:
    model = Big()
    path = tmp_path / f"m.{suffix}"
    store.save(model, path)
    store.load(model, path)
    one = 256 * 1024 * 4
    tracemalloc.start()
    try:
        # The model's own tensors, now made under tracing, are what the load replaces.
        model = Big()
        whole = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        store.load(model, path)
        assert tracemalloc.get_traced_memory()[1] - whole < 1.5 * one
        tracemalloc.reset_peak()
        store.save(model, path)
        assert tracemalloc.get_traced_memory()[1] - whole < 1.5 * one
    finally:
        tracemalloc.stop()


def test_memory_that_somebody_sees_is_not_reused(tmp_path: Path) -> None:
    model = Big()
    path = tmp_path / "m.safetensors"
    store.save(model, path)
    for p in model.parameters():
        p.set(bt.full((256, 1024), 3.0))
    array = model.parts[0].numpy()
    tensor = model.parts[1].detach()
    view = model.parts[2][5]
    snapshot = model.state_dict()["parts.3"]
    store.load(model, path)
    assert all(
        np.all(np.asarray(x) == 3) for x in (array, tensor.numpy(), view.numpy(), snapshot.numpy())
    )
    assert all(np.all(p.numpy() == 0) for p in model.parameters())


@pytest.mark.parametrize("suffix", WRITTEN)
def test_every_tensor_is_read_once(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from burn_store.files import FileBytes

    path = tmp_path / f"m.{suffix}"
    store.save(model := Big(), path)
    into, sizes = FileBytes.into, []

    def counted(self: FileBytes, offset: int, view: memoryview) -> None:
        sizes.append(len(view))
        into(self, offset, view)

    monkeypatch.setattr(FileBytes, "into", counted)
    store.load(model, path)
    assert sum(sizes) < 16 * 256 * 1024 * 4 + 100_000


def test_a_lazy_parameter_takes_what_is_loaded(tmp_path: Path) -> None:
    class Lazy(Module):
        def __init__(self) -> None:
            self.weight = Parameter.lazy()

    model = Lazy()
    with pytest.raises(StoreError, match="weight has no value yet"):
        store.save(model, tmp_path / "m.npz")
    store.save_tensors({"weight": bt.ones(2, 3)}, tmp_path / "m.npz")
    assert store.load(model, tmp_path / "m.npz").complete
    assert model.weight.tolist() == [[1.0] * 3] * 2


def test_what_is_no_module_gets_the_remedy(tmp_path):
    tensors = {"a": bt.ones(2)}
    with pytest.raises(DTypeError, match=r"store\.save: takes a module.*got dict.*save_tensors"):
        store.save(tensors, tmp_path / "a.npz")
    with pytest.raises(DTypeError, match=r"store\.load: takes a module.*store\.open"):
        store.load(tmp_path / "a.npz", tensors)
