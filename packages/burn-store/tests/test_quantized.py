"""Quantised tensors in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_store as store
import burn_tensor as bt
from burn_core import Lora, Module, Quantizer, apply_lora, merge_lora, quantize_weights
from burn_std import StoreError, quantized
from burn_std.dtypes import float16, float32

SCHEMES = [
    quantized(bits, symmetric=symmetric, block=block)
    for bits in (8, 4) for symmetric in (True, False) for block in (0, 4, 3)
]  # fmt: skip


@pytest.fixture(autouse=True)
def _seed() -> None:
    bt.manual_seed(5)


@pytest.fixture
def net(stack: Any) -> Any:
    def make(scheme: Any = None) -> Any:
        model = stack()
        return model if scheme is None else quantize_weights(model, Quantizer(scheme))

    return make


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_a_quantised_model_comes_back_bit_for_bit(
    net: Any, scheme: Any, ending: str, tmp_path: Path
) -> None:
    path, x = tmp_path / f"m.{ending}", bt.randn(4, 7)
    model, other = net(scheme), net(scheme)
    store.save(model, path, metadata={"k": "v"})
    assert store.load(other, path, verify=True).complete
    assert (model(x).numpy() == other(x).numpy()).all()
    with store.open(path) as file:
        assert sorted(file) == [
            "layers.0.bias",
            "layers.0.weight",
            "layers.2.bias",
            "layers.2.weight",
        ]
        assert (file.dtype("layers.0.weight"), file.shape("layers.0.weight")) == (scheme, (5, 7))
        assert file["layers.0.weight"].dtype is scheme
        assert file.metadata["k"] == "v"
        with pytest.raises(StoreError, match="dequantize"):
            file.numpy("layers.0.weight")
    # Saved again it is the same file.
    again = tmp_path / f"again.{ending}"
    store.save(other, again, metadata={"k": "v"})
    assert again.read_bytes() == path.read_bytes()


def test_a_quantised_file_fills_a_model_of_floats(net: Any) -> None:
    model, plain = net(quantized(4, block=3, symmetric=False)), net()
    data = store.to_bytes(model)
    assert store.load(plain, data).complete
    x = bt.randn(4, 7)
    np.testing.assert_allclose(plain(x).numpy(), model(x).numpy(), atol=1e-5)
    for policy, want in (("file", float32), (float16, float16)):
        store.load(other := net(), data, dtype=policy)
        assert other.layers["0"].weight.dtype is want


def test_floats_and_other_schemes_do_not_fill_a_quantised_model(net: Any) -> None:
    model = net(quantized(8))
    before = model(bt.ones(1, 7)).numpy()
    for other in (net(), net(quantized(8, block=4)), net(quantized(4))):
        with pytest.raises(StoreError, match=r"qint8_sym_tensor\[5, 7\] here"):
            store.load(model, store.to_bytes(other))
    assert (model(bt.ones(1, 7)).numpy() == before).all()


def test_adapters_on_quantised_weights_are_saved_and_resumed(net: Any, tmp_path: Path) -> None:
    def make() -> Any:
        return apply_lora(net(), Lora(2, quantizer=Quantizer(quantized(4, block=4))))

    model, other = make(), make()
    for path, p in model.named_parameters():
        if "lora" in path:
            p.set(bt.randn(*p.shape))
    path = tmp_path / "m.safetensors"
    store.save(model, path, shard_size=200)
    assert len(list(tmp_path.iterdir())) > 2
    store.load(other, f"{path}.index.json")
    x = bt.randn(4, 7)
    assert (model(x).numpy() == other(x).numpy()).all()
    merge_lora(other)
    np.testing.assert_allclose(model(x).numpy(), other(x).numpy(), atol=1e-5)


def test_tied_and_renamed_and_single_tensors(linear: Any, tmp_path: Path) -> None:
    class Tied(Module):
        def __init__(self) -> None:
            self.a = linear(4, 4, bias=False)
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return self.a(x) + self.b(x)

    model = quantize_weights(Tied(), Quantizer(quantized(8)))
    other = quantize_weights(Tied(), Quantizer(quantized(8)))
    data = store.to_bytes(model, rename=[("^", "x.")])
    store.load(other, data, rename=[(r"^x\.", "")])
    x = bt.randn(2, 4)
    assert (model(x).numpy() == other(x).numpy()).all()
    with store.open(data) as file:
        assert set(file) == {"x.a.weight", "x.b.weight"}
    path = tmp_path / "t.safetensors"
    given = bt.randn(3, 4).quantize(quantized(8), bt.full((3, 1), 0.1))
    store.save_tensors({"t": given, "u": bt.ones(1)}, path)
    with store.open(path) as file:
        assert (file["t"].dequantize().numpy() == given.dequantize().numpy()).all()


def test_what_has_no_place_is_refused(net: Any, tmp_path: Path) -> None:
    model = net(quantized(8))
    with pytest.raises(StoreError, match="safetensors"):
        store.save(model, tmp_path / "m.bpk")
    clash = {"t": bt.ones(2, 2).quantize(quantized(8)), "t.scale": bt.ones(1)}
    with pytest.raises(StoreError, match="names for its parts"):
        store.save_tensors(clash, tmp_path / "m.safetensors")
    with pytest.raises(StoreError, match="plain numbers"):
        store.to_bytes(model, mappers={"layers.0.weight": abs})
    with pytest.raises(StoreError, match="plain numbers"):
        store.load(net(), store.to_bytes(model), mappers={"layers.0.weight": abs})
    assert list(tmp_path.iterdir()) == []


def _hostile(change: Any) -> bytes:
    """Return a safetensors file of a quantised `w` [3, 5] whose description was changed."""
    tensors = {
        "w": ("I8", [3, 5], 15), "w.scale": ("F32", [3, 2], 24), "w.zero_point": ("I8", [3, 2], 6),
    }  # fmt: skip
    described: Any = {"w": {"dtype": "qint8_affine_block4", "shape": [3, 5]}}
    text = change(tensors, described) or json.dumps(described)
    header: Any = {"__metadata__": {"burn.quantized": text}}
    at = 0
    for name, (code, shape, size) in sorted(tensors.items()):
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + bytes(at)


def test_the_file_that_the_others_are_made_of_is_good() -> None:
    with store.open(_hostile(lambda tensors, described: None)) as file:
        assert file["w"].dequantize().shape == (3, 5)


@pytest.mark.parametrize("change", [
    lambda t, d: "no json", lambda t, d: "[]", lambda t, d: "{" * 100_000,
    lambda t, d: '{"w": 3}', lambda t, d: '{"w": {}}', lambda t, d: '{"w": {"dtype": []}}',
    lambda t, d: d["w"].update(dtype="float32"), lambda t, d: d["w"].update(dtype="qint8"),
    lambda t, d: d["w"].update(dtype="qint8_affine_block" + "9" * 5000),
    lambda t, d: d["w"].update(dtype="qint8_affine_block5"),
    lambda t, d: d["w"].update(dtype="qint4_affine_block4"),
    lambda t, d: d["w"].update(shape=[5, 3]), lambda t, d: d["w"].update(shape=[15]),
    lambda t, d: d["w"].update(shape=[-1, 5]), lambda t, d: d["w"].update(shape=None),
    lambda t, d: d["w"].update(shape=[2**62, 2**62]), lambda t, d: d["w"].update(shape=[3, 5.0]),
    lambda t, d: d.update(v=d["w"]), lambda t, d: d.update({"w.scale": d["w"]}),
    lambda t, d: t.pop("w.scale") and None, lambda t, d: t.pop("w.zero_point") and None,
    lambda t, d: t.update({"w.scale": ("F32", [6], 24)}),
    lambda t, d: t.update({"w.scale": ("I32", [3, 2], 24)}),
    lambda t, d: t.update({"w.zero_point": ("U8", [3, 2], 6)}),
    lambda t, d: t.update({"w": ("U8", [3, 5], 15)}),
    lambda t, d: d.pop("w") and t.update({"w": ("qint8_sym_tensor", [3, 5], 15)}),
])  # fmt: skip
def test_a_description_that_is_not_so_is_refused(change: Any) -> None:
    with pytest.raises(StoreError):
        store.open(_hostile(change))
