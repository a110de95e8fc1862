"""Layouts of Rust's Burn, precision, and burnpack as the crate burn-pack writes it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import burn_store as store
import burn_tensor as bt
from burn_core import Buffer, Module, Parameter
from burn_std import ArgumentError, StoreError
from burn_store.cbor import decoded, encoded


class Linear(Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        self.weight = Parameter(bt.randn(n_out, n_in))
        self.bias = Parameter(bt.randn(n_out))


class LayerNorm(Module):
    def __init__(self, n: int) -> None:
        self.weight = Parameter(bt.randn(n))
        self.bias = Parameter(bt.randn(n))


class BatchNorm2d(LayerNorm):
    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.running_mean = Buffer(bt.randn(n))
        self.running_var = Buffer(bt.randn(n))
        self.num_batches_tracked = Buffer(bt.tensor(1))


class PReLU(Module):
    def __init__(self) -> None:
        self.weight = Parameter(bt.randn(1))


class MultiheadAttention(Module):
    def __init__(self, n: int) -> None:
        self.in_proj_weight = Parameter(bt.randn(3 * n, n))
        self.in_proj_bias = Parameter(bt.randn(3 * n))
        self.out_proj = Linear(n, n)


class LSTM(Module):
    gates = 4

    def __init__(self, n_in: int, n: int, reverse: bool = False) -> None:
        for side in ("", "_reverse") if reverse else ("",):
            setattr(self, f"weight_ih_l0{side}", Parameter(bt.randn(self.gates * n, n_in)))
            setattr(self, f"weight_hh_l0{side}", Parameter(bt.randn(self.gates * n, n)))
            setattr(self, f"bias_ih_l0{side}", Parameter(bt.randn(self.gates * n)))
            setattr(self, f"bias_hh_l0{side}", Parameter(bt.randn(self.gates * n)))


class GRU(LSTM):
    gates = 3


class RNN(LSTM):
    gates = 1


class TransformerEncoderLayer(Module):
    def __init__(self, norm_first: bool) -> None:
        self.self_attn = MultiheadAttention(4)
        self.linear1 = Linear(4, 8)
        self.linear2 = Linear(8, 4)
        self.norm1 = LayerNorm(4)
        self.norm2 = LayerNorm(4)
        self.norm_first = norm_first


class TransformerDecoderLayer(Module):
    def __init__(self, norm_first: bool) -> None:
        self.self_attn = MultiheadAttention(4)
        self.multihead_attn = MultiheadAttention(4)
        self.linear1 = Linear(4, 8)
        self.norm1 = LayerNorm(4)
        self.norm2 = LayerNorm(4)
        self.norm3 = LayerNorm(4)
        self.norm_first = norm_first


class Net(Module):
    def __init__(self) -> None:
        self.fc = Linear(3, 5)
        self.norm = LayerNorm(5)
        self.bn = BatchNorm2d(5)
        self.act = PReLU()
        self.attention = MultiheadAttention(4)
        self.lstm = LSTM(3, 2)
        self.both = LSTM(3, 2, reverse=True)
        self.gru = GRU(3, 2)


def test_burnpack_has_burns_names_and_layouts(tmp_path: Path) -> None:
    model = Net()
    path = tmp_path / "m.bpk"
    store.save(model, path)
    with store.open(path) as file:
        got = {name: file.numpy(name) for name in file}
    assert np.array_equal(got["fc.weight"], model.fc.weight.numpy().T)
    assert {"norm.gamma", "norm.beta", "bn.gamma", "bn.running_var", "act.alpha"} <= set(got)
    assert "bn.num_batches_tracked" not in got
    assert np.array_equal(
        got["attention.key.weight"], model.attention.in_proj_weight.numpy()[4:8].T
    )
    assert np.array_equal(got["attention.value.bias"], model.attention.in_proj_bias.numpy()[8:])
    assert np.array_equal(got["attention.output.weight"], model.attention.out_proj.weight.numpy().T)
    assert np.array_equal(
        got["lstm.forget_gate.hidden_transform.weight"], model.lstm.weight_hh_l0.numpy()[2:4].T
    )
    assert np.array_equal(
        got["lstm.output_gate.input_transform.bias"], model.lstm.bias_ih_l0.numpy()[6:]
    )
    assert "both.reverse.cell_gate.input_transform.weight" in got
    assert "both.forward.cell_gate.input_transform.weight" in got
    assert np.array_equal(
        got["gru.update_gate.input_transform.weight"], model.gru.weight_ih_l0.numpy()[2:4].T
    )
    other = Net()
    report = store.load(other, path)
    assert report.skipped == ["bn.num_batches_tracked"]
    x, y = model.state_dict(), other.state_dict()
    assert all(np.array_equal(x[k].numpy(), y[k].numpy()) for k in x)


class Stack(Module):
    def __init__(self) -> None:
        self.layers = [TransformerEncoderLayer(False), TransformerEncoderLayer(True)]
        self.decoder = [TransformerDecoderLayer(False), TransformerDecoderLayer(True)]
        self.rnn = RNN(3, 2)
        self.both = RNN(3, 2, reverse=True)


def test_layers_of_transformers_have_burns_parts(tmp_path: Path) -> None:
    model, path = Stack(), tmp_path / "m.bpk"
    store.save(model, path)
    with store.open(path) as file:
        got = {name: file.numpy(name) for name in file}
    post, pre = model.layers
    assert np.array_equal(
        got["layers.0.mha.key.weight"], post.self_attn.in_proj_weight.numpy()[4:8].T
    )
    assert np.array_equal(got["layers.1.mha.output.bias"], pre.self_attn.out_proj.bias.numpy())
    assert np.array_equal(got["layers.0.pwff.linear_inner.weight"], post.linear1.weight.numpy().T)
    assert np.array_equal(got["layers.1.pwff.linear_outer.bias"], pre.linear2.bias.numpy())
    # Burn numbers norms by the order behind the parts; in front of them it begins with the last.
    for name, layer in (("1", post.norm1), ("2", post.norm2)):
        assert np.array_equal(got[f"layers.0.norm_{name}.gamma"], layer.weight.numpy())
    for name, layer in (("2", pre.norm1), ("1", pre.norm2)):
        assert np.array_equal(got[f"layers.1.norm_{name}.beta"], layer.bias.numpy())
    post, pre = model.decoder
    assert "decoder.0.self_attn.query.weight" in got
    assert np.array_equal(
        got["decoder.0.cross_attn.output.weight"], post.multihead_attn.out_proj.weight.numpy().T
    )
    for name, layer in (("1", post.norm1), ("2", post.norm2), ("3", post.norm3)):
        assert np.array_equal(got[f"decoder.0.norm_{name}.gamma"], layer.weight.numpy())
    for name, layer in (("3", pre.norm1), ("1", pre.norm2), ("2", pre.norm3)):
        assert np.array_equal(got[f"decoder.1.norm_{name}.gamma"], layer.weight.numpy())
    assert np.array_equal(got["rnn.gate.input_transform.weight"], model.rnn.weight_ih_l0.numpy().T)
    assert "both.reverse.gate.hidden_transform.bias" in got
    other = Stack()
    assert store.load(other, path).complete
    x, y = model.state_dict(), other.state_dict()
    assert all(np.array_equal(x[k].numpy(), y[k].numpy()) for k in x)


def test_a_list_of_layers_counts_only_those_with_parameters(tmp_path: Path) -> None:
    class Holder(Module):
        def __init__(self, *layers: Module) -> None:
            self.layers = list(layers)

    class ReLU(Module):
        pass

    model, path = Holder(Linear(2, 2), ReLU(), Linear(2, 2)), tmp_path / "m.bpk"
    store.save(model, path, rename=store.contiguous_indices(model.state_dict()))
    dense = Holder(Linear(2, 2), Linear(2, 2))
    assert store.load(dense, path).complete
    assert np.array_equal(dense.layers[1].weight.numpy(), model.layers[2].weight.numpy())
    back = {new: old for old, new in store.contiguous_indices(model.state_dict()).items()}
    other = Holder(Linear(2, 2), ReLU(), Linear(2, 2))
    assert store.load(other, path, rename=back).complete
    assert np.array_equal(other.layers[2].weight.numpy(), model.layers[2].weight.numpy())


def test_parameters_keep_their_ids_in_burnpack(tmp_path: Path) -> None:
    model, other = Net(), Net()
    ids = {name: p.id for name, p in other.named_parameters()}
    twin = other.fc.weight.twin()
    for suffix in ("safetensors", "bpk"):
        store.save(model, tmp_path / f"m.{suffix}")
    store.load(other, tmp_path / "m.safetensors")
    assert {name: p.id for name, p in other.named_parameters()} == ids
    store.load(other, tmp_path / "m.bpk")
    own = {name: p.id for name, p in model.named_parameters()}
    # What Burn holds in pieces has no one id there, and keeps its own here.
    split = {n for n in own if n.startswith(("lstm", "both", "gru")) or "in_proj" in n}
    for name, p in other.named_parameters():
        assert p.id == (ids if name in split else own)[name]
    assert twin._id == other.fc.weight.id
    with store.open(tmp_path / "m.bpk") as file:
        assert file._reading.param_ids["norm.gamma"] == int(model.norm.weight.id, 32)
        assert "bn.running_mean" not in file._reading.param_ids
    store.save(model, tmp_path / "s.bpk", shard_size=64)
    store.load(fresh := Net(), tmp_path / "s.bpk.index.json", adapter=store.BurnLayout())
    assert fresh.fc.weight.id == model.fc.weight.id


@pytest.mark.parametrize("bad", [-1, 2**64, "7", 1.5, True])
def test_an_id_that_is_none_is_refused(tmp_path: Path, bad: object) -> None:
    if bad == 2**64:
        with pytest.raises(ArgumentError):
            Parameter(bt.ones(1)).take_id("g000000000000")
        return
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0], "param_id": bad}
    head = encoded({"tensors": {"a": entry}})
    path = tmp_path / "m.bpk"
    whole = struct.pack("<IHI", 0x4255524E, 1, len(head)) + head
    path.write_bytes(whole + bytes(-len(whole) % 256))
    with pytest.raises(StoreError):
        store.open(path)


def test_a_missing_piece_is_named_as_the_file_would(tmp_path: Path) -> None:
    path = tmp_path / "m.bpk"
    store.save(model := Net(), path)
    with store.open(path) as file:
        tensors = {name: file[name] for name in file if name != "attention.key.weight"}
    store.save_tensors(tensors, path)
    report = store.load(model, path, strict=False)
    assert report.missing == ["attention.key.weight"]
    assert report.unused == []


def test_layouts_can_be_chosen(tmp_path: Path) -> None:
    model, other = Net(), Net()
    store.save(model, tmp_path / "m.bpk", adapter=store.TorchLayout())
    with store.open(tmp_path / "m.bpk") as file:
        assert set(file) == set(model.state_dict())
    assert store.load(other, tmp_path / "m.bpk", adapter=store.TorchLayout()).complete
    store.save(model, tmp_path / "m.safetensors", adapter=store.BurnLayout())
    assert store.load(other, tmp_path / "m.safetensors", adapter=store.BurnLayout()).complete


def test_half_precision(tmp_path: Path) -> None:
    model, other = Net(), Net()
    for path in (tmp_path / "m.safetensors", tmp_path / "m.bpk"):
        store.save(model, path, adapter=store.HalfPrecision("bfloat16"))
        with store.open(path) as file:
            assert file.dtype("fc.weight").name == "bfloat16"
            assert file.dtype("bn.running_mean").name == "float32"
        store.load(other, path, adapter=store.HalfPrecision("bfloat16"))
        assert np.allclose(
            other.lstm.weight_hh_l0.numpy(), model.lstm.weight_hh_l0.numpy(), rtol=1e-2
        )
        assert other.fc.weight.dtype.name == "float32"


def test_the_bytes_are_those_of_the_crate(tmp_path: Path) -> None:
    path = tmp_path / "m.bpk"
    store.save_tensors(
        {"w": bt.ones(2, 2), "m": bt.tensor([True])}, path, metadata={"producer": "x"}
    )
    raw = path.read_bytes()
    magic, version, length = struct.unpack("<IHI", raw[:10])
    assert (raw[:4], magic, version) == (b"NRUB", 0x4255524E, 1)
    # Maps in the order of Rust's BTreeMap and struct fields; a variant with contents is a map.
    assert decoded(raw[10 : 10 + length]) == {
        "tensors": {
            "m": {"dtype": {"Bool": "Native"}, "shape": [1], "data_offsets": [256, 257]},
            "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        },
        "metadata": {"producer": "x"},
    }
    assert list(decoded(raw[10 : 10 + length])) == ["tensors", "metadata"]
    assert len(raw) == -(-(10 + length) // 256) * 256 + 257


def test_files_of_older_burn_are_read(tmp_path: Path) -> None:
    head = encoded(
        {
            "tensors": {
                "a": {"dtype": "Bool", "shape": [3], "data_offsets": [0, 3], "param_id": 2**63 + 1},
                "b": {"dtype": "Flex32", "shape": [1], "data_offsets": [3, 7]},
                "q": {"dtype": {"QFloat": {"value": "Q8S"}}, "shape": [2], "data_offsets": [7, 13]},
            },
            "scalars": {"step": {"UInt": 9}, "on": {"Bool": True}, "lr": {"Float": 0.5}},
        }
    )
    path = tmp_path / "m.bpk"
    path.write_bytes(
        struct.pack("<IHI", 0x4255524E, 1, len(head))
        + head
        + b"\1\0\1"
        + struct.pack("<f", 2.5)
        + bytes(6)
    )
    with store.open(path) as file:
        assert file["a"].tolist() == [True, False, True]
        assert file["b"].tolist() == [2.5]
        assert file.extra == {"step": 9, "on": True, "lr": 0.5}
        assert file._reading.param_ids == {"a": 2**63 + 1}
