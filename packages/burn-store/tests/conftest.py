"""Shared by the tests: a small model, files of every kind to damage, and what a refusal is."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import burn_store as store
import burn_tensor as bt
from burn_core import Module, Parameter
from burn_std import StoreError


class Pair(Module):
    """Two parameters, `w` [2, 3] and `b` [3]."""

    def __init__(self) -> None:
        self.w = Parameter(bt.full((2, 3), 7.0))
        self.b = Parameter(bt.full((3,), 7.0))


class Linear(Module):
    """x W^T + b."""

    def __init__(self, inner: int, out: int, bias: bool = True) -> None:
        self.weight = Parameter(bt.randn(out, inner))
        self.bias = Parameter(bt.randn(out)) if bias else None

    def forward(self, x: bt.Tensor) -> bt.Tensor:
        return bt.functional.linear(x, self.weight, self.bias)


class Stack(Module):
    """Two layers, `0` and `2`, with relu between."""

    def __init__(self) -> None:
        self.layers = {"0": Linear(7, 5), "2": Linear(5, 3)}

    def forward(self, x: bt.Tensor) -> bt.Tensor:
        hidden: bt.Tensor = self.layers["0"](x)
        out: bt.Tensor = self.layers["2"](hidden.relu())
        return out


@pytest.fixture
def linear() -> type[Linear]:
    return Linear


@pytest.fixture
def stack() -> type[Stack]:
    return Stack


@pytest.fixture
def pair() -> type[Pair]:
    return Pair


def zip_bytes(
    members: list[tuple[str, bytes]],
    *,
    deflate: bool = False,
    central: dict[int, dict[str, int]] | None = None,
    local: dict[int, dict[str, int]] | None = None,
    end: dict[str, int] | None = None,
) -> bytes:
    """Return an archive; `central`, `local` and `end` overwrite fields of its headers."""
    out, directory = bytearray(), bytearray()
    for k, (name, data) in enumerate(members):
        raw = name.encode()
        packed = data
        if deflate:
            squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = squeeze.compress(data) + squeeze.flush()
        facts = {
            "flags": 0,
            "method": 8 if deflate else 0,
            "crc": zlib.crc32(data),
            "packed": len(packed),
            "size": len(data),
            "offset": len(out),
            "mark": 0x04034B50,
            "extra": 0,
        }
        head = facts | (local or {}).get(k, {})
        out += struct.pack(
            "<I5H3I2H",
            head["mark"],
            20,
            head["flags"],
            head["method"],
            0,
            0,
            head["crc"],
            head["packed"],
            head["size"],
            len(raw),
            head["extra"],
        )
        out += raw + packed
        here = (
            facts | {"mark": 0x02014B50, "disk": 0, "name": len(raw)} | (central or {}).get(k, {})
        )
        directory += struct.pack(
            "<I6H3I5H2I",
            here["mark"],
            20,
            20,
            here["flags"],
            here["method"],
            0,
            0,
            here["crc"],
            here["packed"],
            here["size"],
            here["name"],
            here["extra"],
            0,
            here["disk"],
            0,
            0,
            here["offset"],
        )
        directory += raw
    last = {
        "disk": 0,
        "first": 0,
        "here": len(members),
        "number": len(members),
        "length": len(directory),
        "begin": len(out),
        "comment": 0,
    } | (end or {})
    tail = struct.pack(
        "<I4H2IH",
        0x06054B50,
        last["disk"],
        last["first"],
        last["here"],
        last["number"],
        last["length"],
        last["begin"],
        last["comment"],
    )
    return bytes(out + directory + tail)


@pytest.fixture
def zipped() -> Callable[..., bytes]:
    return zip_bytes


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., StoreError]:
    """Return a check that bytes are refused: typed, in under a second, with the model untouched."""

    def check(data: bytes, name: str, **options: Any) -> StoreError:
        path = tmp_path / name
        path.write_bytes(data)
        model = Pair()
        begin = process_time()
        with pytest.raises(StoreError) as caught:
            store.load(model, path, strict=False, verify=True, **options)
        # Of this process: other work on the machine says nothing of the file.
        assert process_time() - begin < 1.0
        assert np.all(model.w.numpy() == 7) and np.all(model.b.numpy() == 7)
        assert len(str(caught.value)) < 1200
        return caught.value

    return check
