"""Damaged and hostile safetensors, burnpack, sharded and npz files: every one is refused."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_store as store
from burn_std import StoreError
from burn_store.cbor import decoded, encoded

Refused = Callable[..., StoreError]
W = struct.pack("<6f", *range(6))
B = struct.pack("<3f", *range(3))

# ---- safetensors -------------------------------------------------------------------------------


def st(header: Any, data: bytes = W + B, length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(**changes: Any) -> dict[str, Any]:
    made = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} | changes
    return {k: v for k, v in made.items() if v is not None}


SECOND = {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]}
GOOD_ST = st({"w": entry(), "b": SECOND})


def with_w(**changes: Any) -> bytes:
    return st({"w": entry(**changes), "b": SECOND})


SAFETENSORS: dict[str, bytes] = {
    "empty": b"",
    "short_length": b"\1\2\3",
    "length_only": struct.pack("<Q", 2),
    "length_huge": struct.pack("<Q", 1 << 62) + b"{}",
    "length_all_ones": b"\xff" * 8 + b"{}",
    "length_beyond_file": st({"w": entry()}, length=1 << 20),
    "length_of_100_mb": struct.pack("<Q", 100_000_000) + b"{" + bytes(100),
    "length_one_less": st(
        {"w": entry(), "b": SECOND}, length=len(json.dumps({"w": entry(), "b": SECOND})) - 1
    ),
    "length_zero": st(b""),
    "not_json": st(b"{not json}"),
    "not_utf8": st(b'{"\xff\xfe": 1}'),
    "json_list": st([1]),
    "json_number": st(b"1"),
    "json_null": st(b"null"),
    "json_deep": st(b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "json_deep_dicts": st(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "json_nan": st(b'{"w": NaN}'),
    "json_long_number": st(b'{"w": ' + b"9" * 10_000 + b"}"),
    "json_trailing": st(json.dumps({"w": entry(), "b": SECOND}).encode() + b"x"),
    "name_twice": st(
        b'{"w":' + json.dumps(entry()).encode() + b',"w":' + json.dumps(entry()).encode() + b"}", W
    ),
    "key_twice_in_entry": st(
        b'{"w":{"dtype":"F32","dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}', W
    ),
    "metadata_list": st({"__metadata__": [], "w": entry(), "b": SECOND}),
    "metadata_number": st({"__metadata__": {"a": 1}, "w": entry(), "b": SECOND}),
    "metadata_nested": st({"__metadata__": {"a": {}}, "w": entry(), "b": SECOND}),
    "entry_list": st({"w": [], "b": SECOND}),
    "entry_null": st({"w": None, "b": SECOND}),
    "entry_text": st({"w": "F32", "b": SECOND}),
    "entry_without_dtype": with_w(dtype=None),
    "entry_without_shape": with_w(shape=None),
    "entry_without_offsets": with_w(data_offsets=None),
    "entry_with_more": with_w(more=1),
    "dtype_number": with_w(dtype=32),
    "dtype_list": with_w(dtype=["F32"]),
    "dtype_of_other_size": with_w(dtype="F64"),
    "dtype_unknown_with_offsets_outside": with_w(dtype="F8_E9M3", data_offsets=[1 << 60, 1 << 61]),
    "shape_number": with_w(shape=6),
    "shape_text": with_w(shape="23"),
    "shape_of_floats": with_w(shape=[2.0, 3.0]),
    "shape_of_bools": with_w(shape=[True, 6]),
    "shape_nested": with_w(shape=[[2], [3]]),
    "shape_negative": with_w(shape=[-2, -3]),
    "shape_too_large": with_w(shape=[1000, 1000]),
    "shape_huge": with_w(shape=[1 << 40, 1 << 40]),
    "shape_overflow": with_w(shape=[1 << 32, 1 << 32, 6]),
    "shape_huge_with_zero": with_w(shape=[1 << 62, 1 << 62, 0]),
    "shape_too_small": with_w(shape=[2, 2]),
    "shape_rank_100": with_w(shape=[1] * 100),
    "shape_scalar": with_w(shape=[]),
    "offsets_one": with_w(data_offsets=[0]),
    "offsets_three": with_w(data_offsets=[0, 24, 24]),
    "offsets_text": with_w(data_offsets="0,24"),
    "offsets_floats": with_w(data_offsets=[0.0, 24.0]),
    "offsets_bools": with_w(data_offsets=[False, 24]),
    "offsets_null": with_w(data_offsets=[None, 24]),
    "offsets_reversed": with_w(data_offsets=[24, 0]),
    "offsets_negative": with_w(data_offsets=[-24, 0]),
    "offsets_outside": with_w(data_offsets=[36, 60]),
    "offsets_end_outside": with_w(data_offsets=[0, 1 << 40]),
    "offsets_huge": with_w(data_offsets=[1 << 100, (1 << 100) + 24]),
    "offsets_short": with_w(data_offsets=[0, 4]),
    "overlap": st({"w": entry(), "b": SECOND | {"data_offsets": [12, 24]}}, W),
    "overlap_by_one": st({"w": entry(), "b": SECOND | {"data_offsets": [23, 35]}}, W + B),
    "same_bytes": st({"w": entry(), "v": entry()}, W),
    "gap_at_begin": st({"w": entry(data_offsets=[4, 28])}, b"\0" * 4 + W),
    "gap_between": st({"w": entry(), "b": SECOND | {"data_offsets": [28, 40]}}, W + b"\0" * 4 + B),
    "bytes_at_end": st({"w": entry(), "b": SECOND}, W + B + b"x"),
    "data_missing": st({"w": entry(), "b": SECOND}, b""),
    "data_short": st({"w": entry(), "b": SECOND}, W + B[:-1]),
    "is_a_pytorch_file": b"PK\x03\x04" + bytes(60),
    "is_text": b"this is no file of tensors at all",
}


@pytest.mark.parametrize("name", SAFETENSORS)
def test_a_hostile_safetensors_file_is_refused(name: str, refused: Refused) -> None:
    refused(SAFETENSORS[name], "x.safetensors")
    refused(SAFETENSORS[name], "y.safetensors", format="safetensors")


@pytest.mark.parametrize("size", range(0, len(GOOD_ST), 7))
def test_a_truncated_safetensors_file_is_refused(size: int, refused: Refused) -> None:
    refused(GOOD_ST[:size], "x.safetensors")


def test_the_tensor_at_fault_is_named(refused: Refused) -> None:
    assert "bytes of w" in str(refused(SAFETENSORS["offsets_short"], "x.safetensors"))
    assert "w and b" in str(refused(SAFETENSORS["overlap"], "x.safetensors"))


def test_an_unknown_dtype_hurts_only_its_own_tensor(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(st({"w": entry(), "b": SECOND | {"dtype": "F8_E4M3", "shape": [12]}}))
    with store.open(path) as file:
        assert file["w"].shape == (2, 3)
        with pytest.raises(StoreError, match="dtype of b is not supported; got F8_E4M3"):
            file["b"]


# ---- burnpack ----------------------------------------------------------------------------------


def bpk(
    head: Any,
    data: bytes = W + bytes(232) + B,
    magic: int = 0x4255524E,
    version: int = 1,
    length: int | None = None,
) -> bytes:
    raw = head if isinstance(head, bytes) else encoded(head)
    begin = struct.pack("<IHI", magic, version, len(raw) if length is None else length) + raw
    return begin + bytes(-len(begin) % 256) + data


THIRD = {"dtype": "F32", "shape": [3], "data_offsets": [256, 268]}


def pack(**changes: Any) -> bytes:
    return bpk({"tensors": {"w": entry(**changes), "b": THIRD}})


GOOD_BPK = pack()

BURNPACK: dict[str, bytes] = {
    "empty": b"",
    "short_head": b"NRUB\1\0",
    "other_magic": bpk({"tensors": {}}, magic=0x4E525542),
    "version_0": bpk({"tensors": {}}, version=0),
    "version_2": bpk({"tensors": {}}, version=2),
    "length_huge": bpk({"tensors": {}}, length=0xFFFFFFFF),
    "length_beyond_file": bpk({"tensors": {}}, b"", length=5000),
    "length_zero": bpk(b""),
    "length_too_small": bpk({"tensors": {"w": entry(), "b": THIRD}}, length=20),
    "length_too_large": bpk({"tensors": {"w": entry(), "b": THIRD}}, length=200),
    "not_a_map": bpk([1, 2]),
    "number": bpk(7),
    "no_tensors": bpk({"metadata": {}}),
    "tensors_list": bpk({"tensors": []}),
    "metadata_list": bpk({"tensors": {}, "metadata": []}),
    "metadata_number": bpk({"tensors": {}, "metadata": {"a": 1}}),
    "scalars_list": bpk({"tensors": {}, "scalars": []}),
    "scalar_bare": bpk({"tensors": {}, "scalars": {"a": 1}}),
    "scalar_text": bpk({"tensors": {}, "scalars": {"a": {"Int": "x"}}}),
    "entry_list": bpk({"tensors": {"w": []}}),
    "dtype_missing": pack(dtype=None),
    "dtype_number": pack(dtype=1),
    "dtype_two_variants": pack(dtype={"Bool": "Native", "F32": None}),
    "dtype_of_other_size": pack(dtype="F64"),
    "shape_missing": pack(shape=None),
    "shape_negative": pack(shape=[-2, -3]),
    "shape_text": pack(shape="ab"),
    "shape_huge": pack(shape=[1 << 60, 1 << 60]),
    "shape_too_large": pack(shape=[1000, 1000]),
    "shape_too_small": pack(shape=[2, 2]),
    "shape_rank_100": pack(shape=[1] * 100),
    "offsets_missing": pack(data_offsets=None),
    "offsets_one": pack(data_offsets=[0]),
    "offsets_text": pack(data_offsets="ab"),
    "offsets_floats": pack(data_offsets=[0.0, 24.0]),
    "offsets_reversed": pack(data_offsets=[24, 0]),
    "offsets_negative": pack(data_offsets=[-24, 0]),
    "offsets_outside": pack(data_offsets=[1 << 40, (1 << 40) + 24]),
    "offsets_overflow": pack(data_offsets=[(1 << 64) - 24, (1 << 64) - 1]),
    "overlap": pack(data_offsets=[250, 274]),
    "same_bytes": bpk({"tensors": {"w": entry(), "v": entry()}}, W),
    "bytes_at_end": GOOD_BPK + b"x",
    "data_missing": bpk({"tensors": {"w": entry(), "b": THIRD}}, b""),
    "data_short": GOOD_BPK[:-1],
    "many_tensors": bpk({"tensors": dict.fromkeys(map(str, range(100_001)), 0)}),
    # CBOR, by its bytes.
    "cbor_cut_in_head": bpk(b"\xa1"),
    "cbor_text_beyond": bpk(b"\xa1\x7b" + b"\xff" * 8),
    "cbor_bytes_beyond": bpk(b"\x5a\xff\xff\xff\xffab"),
    "cbor_list_of_many": bpk(b"\x9b" + b"\xff" * 8),
    "cbor_map_of_many": bpk(b"\xbb" + b"\xff" * 8),
    "cbor_deep_lists": bpk(b"\x81" * 100_000),
    "cbor_deep_maps": bpk(b"\xa1\x61a" * 100_000),
    "cbor_deep_tags": bpk(b"\xc1" * 100_000),
    "cbor_deep_endless": bpk(b"\x9f" * 100_000),
    "cbor_many_items": bpk(b"\x9a\x00\xff\xff\xff" + bytes(3_000_000)),
    "cbor_endless_list": bpk(b"\x9f\x00\x00"),
    "cbor_endless_text_of_numbers": bpk(b"\x7f\x00\xff"),
    "cbor_break_alone": bpk(b"\xff"),
    "cbor_break_as_value": bpk(b"\xbf\x61a\xff\xff"),
    "cbor_break_in_list": bpk(b"\x82\x00\xff"),
    "cbor_endless_number": bpk(b"\x1f"),
    "cbor_reserved_length": bpk(b"\x1c"),
    "cbor_reserved_simple": bpk(b"\xf8\x20"),
    "cbor_key_number": bpk(b"\xa1\x01\x02"),
    "cbor_key_list": bpk(b"\xa1\x80\x02"),
    "cbor_key_twice": bpk(b"\xa2\x61a\x01\x61a\x02"),
    "cbor_not_utf8": bpk(b"\xa1\x62\xff\xfe\x01"),
    "cbor_two_values": bpk(b"\xa0\xa0"),
}


@pytest.mark.parametrize("name", BURNPACK)
def test_a_hostile_burnpack_file_is_refused(name: str, refused: Refused) -> None:
    refused(BURNPACK[name], "x.bpk")


@pytest.mark.parametrize("size", range(0, len(GOOD_BPK), 31))
def test_a_truncated_burnpack_file_is_refused(size: int, refused: Refused) -> None:
    refused(GOOD_BPK[:size], "x.bpk")


def test_cbor_is_read_in_all_its_forms() -> None:
    assert decoded(bytes.fromhex("bf61619f0102ff61627f61786179ffff")) == {"a": [1, 2], "b": "xy"}
    assert decoded(bytes.fromhex("f93c00")) == 1.0
    assert decoded(bytes.fromhex("fa3fc00000")) == 1.5
    assert decoded(bytes.fromhex("c11a514b67b0")) == 1363896240
    for value in (
        0,
        23,
        24,
        255,
        256,
        65535,
        65536,
        2**32 - 1,
        2**32,
        2**64 - 1,
        -1,
        -24,
        -25,
        -(2**63),
        1.5,
        None,
        True,
        False,
        "é",
        [],
        {},
    ):
        assert decoded(encoded([value])) == [value]


# ---- sharded -----------------------------------------------------------------------------------

INDICES: dict[str, Any] = {
    "not_json": b"{oops",
    "list": [],
    "no_weight_map": {"metadata": {}},
    "weight_map_list": {"weight_map": []},
    "weight_map_of_numbers": {"weight_map": {"w": 1}},
    "metadata_list": {"metadata": [1], "weight_map": {"w": "a.safetensors"}},
    "parent_folder": {"weight_map": {"w": "../a.safetensors"}},
    "absolute_path": {"weight_map": {"w": "/etc/passwd"}},
    "sub_folder": {"weight_map": {"w": "sub/a.safetensors"}},
    "backslash": {"weight_map": {"w": "..\\a.safetensors"}},
    "hidden_file": {"weight_map": {"w": ".a.safetensors"}},
    "empty_name": {"weight_map": {"w": ""}},
    "itself": {"weight_map": {"w": "x.safetensors.index.json"}},
    "another_index": {"weight_map": {"w": "y.index.json"}},
    "shard_missing": {"weight_map": {"w": "none.safetensors"}},
    "tensor_missing": {"weight_map": {"v": "a.safetensors"}},
    "shard_corrupt": {"weight_map": {"w": "b.safetensors"}},
    "many_shards": {"weight_map": {str(k): f"{k}.safetensors" for k in range(5000)}},
    "deep": b'{"weight_map":' + b"[" * 100_000,
}


@pytest.mark.parametrize("name", INDICES)
def test_a_hostile_index_is_refused(name: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(GOOD_ST)
    (tmp_path / "b.safetensors").write_bytes(GOOD_ST[:-5])
    raw = INDICES[name] if isinstance(INDICES[name], bytes) else json.dumps(INDICES[name]).encode()
    refused(raw, "x.safetensors.index.json")


# ---- npz ---------------------------------------------------------------------------------------


def npy(
    descr: str = "'<f4'", shape: str = "(2, 3)", data: bytes = W, order: str = "False", **parts: Any
) -> bytes:
    text = parts.get(
        "text", f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    )
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    length = parts.get("length", len(text))
    return (
        parts.get("magic", b"\x93NUMPY")
        + parts.get("version", b"\1\0")
        + struct.pack("<H", length)
        + text
        + data
    )


NPZ: dict[str, bytes] = {
    "empty": b"",
    "short": b"\x93NUMPY",
    "other_magic": npy(magic=b"\x93NUMPX"),
    "version_0": npy(version=b"\0\0"),
    "version_9": npy(version=b"\x09\0"),
    "length_beyond": npy(length=60000),
    "length_zero": npy(length=0),
    "length_version_2_huge": b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(100),
    "text_code": npy(text=b"__import__('os').system('touch hacked')"),
    "text_without_shape": npy(text=b"{'descr': '<f4', 'fortran_order': False, }"),
    "text_deep": npy(text=b"(" * 5000),
    "object_dtype": npy(descr="'|O'", data=b"cos\nsystem\n(S'id'\ntR."),
    "object_dtype_8": npy(descr="'|O8'", shape="(0,)", data=b"\x80\x02cos\nsystem\n."),
    "structured_dtype": npy(descr="[('a', '<f4')]"),
    "dtype_of_other_size": npy(descr="'<f8'"),
    "order_text": npy(order="'yes'"),
    "shape_negative": npy(shape="(-2, -3)"),
    "shape_floats": npy(shape="(2.0, 3.0)"),
    "shape_call": npy(shape="(len([1,2]), 3)"),
    "shape_huge": npy(shape="(1152921504606846976, 1152921504606846976)"),
    "shape_huge_with_zero": npy(shape="(4611686018427387904, 4611686018427387904, 0)", data=b""),
    "shape_long_number": npy(shape=f"({'9' * 5000},)"),
    "shape_extent_of_1000_digits": npy(shape=f"({'9' * 1000},)"),
    "shape_too_large": npy(shape="(1000, 1000)"),
    "shape_too_small": npy(shape="(2, 2)"),
    "shape_rank_100": npy(shape=f"({'1, ' * 100})"),
    "data_short": npy(data=W[:-1]),
    "data_long": npy(data=W + b"x"),
}


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("name", NPZ)
def test_a_hostile_array_is_refused(
    name: str, deflate: bool, refused: Refused, zipped: Callable[..., bytes], tmp_path: Path
) -> None:
    # An object array whose bytes fit is only ever an unsupported dtype, which no model takes.
    if name == "object_dtype_8":
        path = tmp_path / "o.npz"
        path.write_bytes(zipped([("w.npy", NPZ[name])], deflate=deflate))
        with pytest.raises(StoreError, match="not supported"):
            store.open(path)["w"]
        return
    refused(zipped([("w.npy", NPZ[name])], deflate=deflate), "x.npz")


NPZ_MEMBERS: dict[str, list[tuple[str, bytes]]] = {
    "not_an_array": [("w.npy", npy()), ("code.py", b"x")],
    "folder": [("w.npy", npy()), ("sub/", b"")],
    "two_of_one_name": [("w.npy", npy()), ("w.npy", npy())],
    "metadata_not_json": [("w.npy", npy()), ("__metadata__.npy", npy("'|u1'", "(3,)", b"abc"))],
    "metadata_list": [("w.npy", npy()), ("__metadata__.npy", npy("'|u1'", "(2,)", b"[]"))],
    "metadata_floats": [("w.npy", npy()), ("__metadata__.npy", npy())],
}


@pytest.mark.parametrize("name", NPZ_MEMBERS)
def test_wrong_members_of_an_npz_are_refused(
    name: str, refused: Refused, zipped: Callable[..., bytes]
) -> None:
    refused(zipped(NPZ_MEMBERS[name]), "x.npz")


def test_a_compressed_array_that_does_not_unpack_is_refused_whole(
    refused: Refused, zipped: Callable[..., bytes]
) -> None:
    good = npy("'<f4'", "(3,)", B)
    bad = npy(data=random.Random(1).randbytes(24))
    data = bytearray(zipped([("b.npy", good), ("w.npy", bad)], deflate=True))
    at = data.index(b"w.npy") + 90
    data[at : at + 3] = b"\xff\xff\xff"
    refused(bytes(data), "x.npz")


def test_a_bomb_of_zeros_is_refused(refused: Refused, zipped: Callable[..., bytes]) -> None:
    bomb = npy(shape="(50000000,)", data=bytes(200_000_000))
    assert "unpack to too much" in str(refused(zipped([("w.npy", bomb)], deflate=True), "x.npz"))


# ---- all of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["safetensors", "bpk", "npz"])
def test_random_damage_ends_in_a_store_error_or_not_at_all(
    suffix: str, tmp_path: Path, pair: Any
) -> None:
    path = tmp_path / f"x.{suffix}"
    store.save(pair(), path, metadata={"a": "b"})
    good = path.read_bytes()
    rng = random.Random(suffix)
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            with store.open(path) as file:
                for key in file:
                    file.numpy(key)
        except StoreError:
            pass


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (SAFETENSORS["length_of_100_mb"], "x.safetensors"),
        (SAFETENSORS["shape_huge"], "x.safetensors"),
        (st(b'{"w":[' + b"[]," * 2_000_000 + b"1]}"), "x.safetensors"),
        (st(b'{"w":[' + b"1," * 2_000_000 + b"1]}"), "x.safetensors"),
        (BURNPACK["cbor_many_items"], "x.bpk"),
        (BURNPACK["cbor_list_of_many"], "x.bpk"),
    ],
    ids=["long_header", "huge_shape", "json_lists", "json_numbers", "cbor_items", "cbor_list"],
)
def test_memory_stays_bounded(data: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(StoreError):
            store.open(path)
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    import os

    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    for name in ("folder.safetensors", "pipe.safetensors", "none.safetensors"):
        with pytest.raises(StoreError):
            store.open(tmp_path / name)
    with pytest.raises(StoreError, match="no installed format knows"):
        (tmp_path / "x.unknown").write_bytes(b"\0" * 100)
        store.open(tmp_path / "x.unknown")


def test_a_file_cut_while_it_is_open_is_an_error(tmp_path: Path, pair: Any) -> None:
    path = tmp_path / "x.safetensors"
    store.save(pair(), path)
    with store.open(path) as file:
        with path.open("r+b") as handle:
            handle.truncate(path.stat().st_size - 8)
        with pytest.raises(StoreError, match="shorter"):
            for key in file:
                file.numpy(key)


def test_bools_are_zero_or_one_whatever_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(
        st({"m": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\0\1\xff")
    )
    with store.open(path) as file:
        got = file.numpy("m")
    assert got.view(np.uint8).tolist() == [0, 1, 1]
