"""Damaged and hostile PyTorch files: every one is refused, nothing of them runs."""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import burn_store as store
from burn_std import StoreError

DATA = Path(__file__).parent / "data"
Refused = Callable[..., StoreError]
W = struct.pack("<6f", *range(6))


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(16, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def tuple_of(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def stored(
    key: str = "0", numel: int = 6, kind: bytes = b"ctorch\nFloatStorage\n", tail: bytes = b""
) -> bytes:
    return b"(" + text("storage") + kind + text(key) + text("cpu") + number(numel) + tail + b"tQ"


def tensor(
    storage: bytes | None = None,
    offset: bytes = number(0),
    shape: bytes = tuple_of(2, 3),
    strides: bytes = tuple_of(3, 1),
    call: bytes = b"ctorch._utils\n_rebuild_tensor_v2\n",
) -> bytes:
    return (
        call
        + b"("
        + (storage or stored())
        + offset
        + shape
        + strides
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def state(**values: bytes) -> bytes:
    return b"\x80\x02}(" + b"".join(text(k) + v for k, v in values.items()) + b"u."


GOOD = state(w=tensor())


def nested(depth: int) -> bytes:
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


# Pickles that must be refused; each is put into an otherwise right archive.
PICKLES: dict[str, bytes] = {
    "empty": b"",
    "only_stop": b".",
    "no_stop": GOOD[:-1],
    "two_values": b"\x80\x02}}.",
    "protocol_6": b"\x80\x06}.",
    "mark_is_the_value": b"(.",
    "unknown_opcode": b"\x80\x02\xff.",
    "pop_of_nothing": b"0.",
    "dup_of_nothing": b"2.",
    "tuple_without_mark": b"t.",
    "tuple3_of_one": b"N\x87.",
    "append_to_nothing": b"Na.",
    "append_to_number": b"K\1K\2a.",
    "appends_to_dict": b"}(K\1e.",
    "setitem_on_list": b"]K\1K\2s.",
    "setitems_odd": b"}(K\1u.",
    "list_as_key": b"}]Ns.",
    "deep_tuple_as_key": b"}" + b")" + b"\x85" * 100_000 + b"Ns.",
    "memo_of_nothing": b"h\5.",
    "memo_text_index": b"gx\n.",
    "put_without_value": b"q\0.",
    "text_beyond_the_end": b"X\xff\xff\xff\x7fabc.",
    "text8_beyond_the_end": b"\x8d" + b"\xff" * 8 + b"abc.",
    "bytes8_beyond_the_end": b"\x8e" + b"\xff" * 7 + b"\x7fabc.",
    "bytearray8_beyond_the_end": b"\x96" + b"\xff" * 7 + b"\x7fabc.",
    "text_not_utf8": b"X\2\0\0\0\xff\xfe.",
    "long_negative_size": b"\x8b\xff\xff\xff\xff.",
    "long_too_long": b"\x8b\0\0\1\0" + bytes(65536) + b".",
    "int_not_a_number": b"Iabc\n.",
    "float_not_a_number": b"Fabc\n.",
    "endless_line": b"I" + b"1" * 100_000,
    "ext1": b"\x82\1.",
    "ext4": b"\x84\1\0\0\0.",
    "inst": b"(ios\nsystem\n.",
    "obj": b"(cos\nsystem\no.",
    "persid_text": b"P0\n.",
    "next_buffer": b"\x97.",
    "readonly_buffer": b"\x98.",
    "string_opcode": b"S'abc'\n.",
    "os_system": b"cos\nsystem\n(X\4\0\0\0idXXtR.",
    "posix_system": b"cposix\nsystem\n" + b"(" + text("touch hacked") + b"tR.",
    "nt_system": b"cnt\nsystem\n" + b"(" + text("id") + b"tR.",
    "eval": b"cbuiltins\neval\n(" + text("1+1") + b"tR.",
    "exec": b"cbuiltins\nexec\n(" + text("x=1") + b"tR.",
    "exec_python2": b"c__builtin__\neval\n(" + text("1") + b"tR.",
    "getattr": b"cbuiltins\ngetattr\n(NN" + b"tR.",
    "import": b"cbuiltins\n__import__\n(" + text("os") + b"tR.",
    "open": b"cbuiltins\nopen\n(" + text("/etc/passwd") + b"tR.",
    "compile": b"cbuiltins\ncompile\n(NNNtR.",
    "subprocess": b"csubprocess\nPopen\n(" + text("id") + b"tR.",
    "pickle_loads": b"c_pickle\nloads\n(NtR.",
    "torch_load": b"ctorch.serialization\nload\n(NtR.",
    "load_from_bytes": b"ctorch.storage\n_load_from_bytes\n(C\1atR.",
    "torch_hub": b"ctorch.hub\nload\n(NtR.",
    "stack_global_system": b"\x80\x04"
    + text("os")
    + text("system")
    + b"\x93("
    + text("id")
    + b"tR.",
    "stack_global_of_numbers": b"K\1K\2\x93.",
    "stack_global_dotted": b"\x80\x04"
    + text("torch._utils")
    + text("_rebuild_tensor_v2.__globals__")
    + b"\x93.",
    "newobj_system": b"cos\nsystem\n)\x81.",
    "newobj_of_number": b"K\1)\x81.",
    "newobj_ex_without_dict": b"ccollections\nOrderedDict\n)N\x92.",
    "runpy": b"crunpy\nrun_module\n(NtR.",
    "operator_call": b"coperator\nattrgetter\n(NtR.",
    "functools_partial": b"cfunctools\npartial\n(NtR.",
    "webbrowser": b"cwebbrowser\nopen\n(NtR.",
    "numpy_load": b"cnumpy\nload\n(NtR.",
    "numpy_runstring": b"cnumpy.testing._private.utils\nrunstring\n(NNtR.",
    "user_class": b"c__main__\nNet\n)\x81}b.",
    "call_a_number": b"K\1)R.",
    "call_without_tuple": b"ccollections\nOrderedDict\nNR.",
    "call_a_storage_type": b"ctorch\nFloatStorage\n)R.",
    "call_a_tensor_type": b"ctorch\nTensor\n)R.",
    "ordered_of_number": b"ccollections\nOrderedDict\n(K\1tR.",
    "ordered_of_triples": b"ccollections\nOrderedDict\n(](K\1K\2K\3tatR.",
    "codec_other": b"c_codecs\nencode\n(" + text("a") + text("rot13") + b"tR.",
    "codec_not_latin": b"c_codecs\nencode\n(" + text("\u20ac") + text("latin1") + b"tR.",
    "size_negative": b"ctorch\nSize\n(" + tuple_of(-1) + b"tR.",
    "size_of_text": b"ctorch\nSize\n(" + text("a") + b"tR.",
    "build_on_number": b"K\1Nb.",
    "build_on_nothing": b"Nb.",
    "parameter_of_number": b"ctorch._utils\n_rebuild_parameter\n(K\1\x88NtR.",
    "parameter_without_arguments": b"ctorch._utils\n_rebuild_parameter\n)R.",
    "pid_number": b"K\1Q.",
    "pid_short": b"(" + text("storage") + b"tQ.",
    "pid_other_kind": b"(" + text("file") + b"NNNNtQ.",
    "pid_without_type": b"(" + text("storage") + b"N" + text("0") + text("cpu") + b"K\6tQ.",
    "pid_of_another_global": state(w=tensor(stored(kind=b"ctorch\nSize\n"))),
    "pid_negative_numel": state(w=tensor(stored(numel=-6))),
    "pid_huge_numel": state(w=tensor(stored(numel=2**100))),
    "pid_key_is_number": b"("
    + text("storage")
    + b"ctorch\nFloatStorage\nK\0"
    + text("cpu")
    + b"K\6tQ.",
    "pid_key_is_long": state(w=tensor(stored(key="a" * 300))),
    "pid_view_outside": state(
        w=tensor(stored(tail=b"(" + text("v") + number(4) + number(4) + b"t"))
    ),
    "pid_view_negative": state(
        w=tensor(stored(tail=b"(" + text("v") + number(-4) + number(4) + b"t"))
    ),
    "storage_missing": state(w=tensor(stored(key="9"))),
    "storage_path_escape": state(w=tensor(stored(key="../../../../etc/passwd"))),
    "storage_too_short": state(w=tensor(stored(numel=7))),
    "storage_much_too_short": state(w=tensor(stored(numel=2**40))),
    "storage_two_dtypes": state(w=tensor(), b=tensor(stored(kind=b"ctorch\nIntStorage\n"))),
    "tensor_without_storage": state(w=tensor(b"N")),
    "tensor_on_a_list": state(w=tensor(b"]")),
    "stride_outside": state(w=tensor(strides=tuple_of(10**9, 1))),
    "stride_huge": state(w=tensor(strides=tuple_of(2**62, 1))),
    "stride_beyond_64_bits": state(w=tensor(strides=tuple_of(2**100, 1))),
    "stride_negative": state(w=tensor(strides=tuple_of(-3, 1))),
    "strides_of_other_rank": state(w=tensor(strides=tuple_of(1))),
    "strides_text": state(w=tensor(strides=text("ab"))),
    "offset_negative": state(w=tensor(offset=number(-1))),
    "offset_outside": state(w=tensor(offset=number(1))),
    "offset_huge": state(w=tensor(offset=number(2**63))),
    "offset_text": state(w=tensor(offset=text("0"))),
    "offset_bool": state(w=tensor(offset=b"\x88")),
    "shape_negative": state(w=tensor(shape=tuple_of(-2, 3))),
    "shape_huge": state(w=tensor(shape=tuple_of(2**40, 2**40))),
    "shape_huge_with_zero": state(
        w=tensor(shape=tuple_of(2**62, 2**62, 0), strides=tuple_of(0, 0, 0))
    ),
    "shape_of_floats": state(
        w=tensor(shape=b"(G" + struct.pack(">d", 2.0) + b"t", strides=tuple_of(1))
    ),
    "shape_of_bools": state(w=tensor(shape=b"(\x88\x88t")),
    "shape_number": state(w=tensor(shape=number(6))),
    "rank_1000": state(w=tensor(shape=tuple_of(*[1] * 1000), strides=tuple_of(*[1] * 1000))),
    "expanded_bomb": state(w=tensor(shape=tuple_of(2**30, 2**10), strides=tuple_of(0, 0))),
    "overlapping_window_bomb": state(
        w=tensor(shape=tuple_of(*[2] * 40), strides=tuple_of(*[0] * 40))
    ),
    "v3_without_dtype": state(
        w=b"ctorch._utils\n_rebuild_tensor_v3\n(" + stored() + b"K\0))\x89N" + b"NtR"
    ),
    "v2_too_few": state(w=b"ctorch._utils\n_rebuild_tensor_v2\n(" + stored() + b"tR"),
    "v2_too_many": state(w=b"ctorch._utils\n_rebuild_tensor_v2\n(" + stored() + b"K\0))NNNNNNtR"),
    "from_type_of_system": b"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nN)NtR.",
    "from_type_of_itself": b"ctorch._tensor\n_rebuild_from_type_v2\nq\0(h\0N)NtR.",
    "from_type_of_number": b"ctorch._tensor\n_rebuild_from_type_v2\n(K\1N)NtR.",
    "dict_in_itself": b"}q\0" + text("a") + b"h\0s.",
    "list_in_itself": b"]q\0h\0a.",
    "cycle_of_two": b"}q\0" + text("a") + b"]q\1h\0as.",
    "deep_lists": nested(1000),
    "very_deep_lists": nested(200_000),
    "same_name_twice": b"\x80\x02}("
    + text("a")
    + b"}("
    + text("b")
    + tensor()
    + b"u"
    + text("a.b")
    + tensor()
    + b"u.",
    "doubling_with_a_tensor": b"\x80\x02" + tensor() + b"\x85" + b"2\x86" * 60 + b".",
    "many_opcodes": b"\x80\x02" + b"N0" * 600_000 + b"}.",
    "many_lists": b"\x80\x02](" + b"]" * 2_100_000 + b"e.",
}


def pt(zipped: Callable[..., bytes], pickled: bytes, data: bytes = W, **options: Any) -> bytes:
    return zipped(
        [
            ("a/data.pkl", pickled),
            ("a/byteorder", b"little"),
            ("a/data/0", data),
            ("a/version", b"3\n"),
        ],
        **options,
    )


def test_the_undamaged_file_loads(tmp_path: Path, zipped: Callable[..., bytes], pair: Any) -> None:
    for k, data in enumerate((pt(zipped, GOOD), pt(zipped, GOOD, deflate=True))):
        path = tmp_path / f"{k}.pt"
        path.write_bytes(data)
        model = pair()
        assert store.load(model, path, allow_missing=True, verify=True).applied == ["w"]
        assert model.w.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_reading_does_not_go_by_elements(tmp_path: Path, zipped: Callable[..., bytes]) -> None:
    steps = []
    for rows in (2, 200_000):
        path = tmp_path / f"{rows}.pt"
        pickled = state(w=tensor(stored(numel=3 * rows), shape=tuple_of(rows, 3)))
        path.write_bytes(pt(zipped, pickled, struct.pack(f"<{3 * rows}f", *range(3 * rows))))
        steps.append(0)

        def count(*seen: Any) -> None:
            steps[-1] += 1

        sys.setprofile(count)
        try:
            with store.open(path) as file:
                read = file.numpy("w")
        finally:
            sys.setprofile(None)
        assert read.shape == (rows, 3) and read[-1, -1] == 3 * rows - 1
    # Some for each megabyte of a checksum, and none for each number.
    assert steps[1] < steps[0] + 1000


@pytest.mark.parametrize("name", PICKLES)
def test_a_hostile_pickle_is_refused(
    name: str, refused: Refused, zipped: Callable[..., bytes], tmp_path: Path
) -> None:
    refused(pt(zipped, PICKLES[name]), "x.pt")
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


@pytest.mark.parametrize(
    "name",
    ["os_system", "eval", "stack_global_system", "newobj_system", "user_class", "subprocess"],
)
def test_inert_objects_do_nothing(name: str, tmp_path: Path, zipped: Callable[..., bytes]) -> None:
    pickled = PICKLES[name].replace(b"(X\4\0\0\0idXXtR", b"(" + text("touch hacked") + b"tR")
    path = tmp_path / "x.pt"
    path.write_bytes(pt(zipped, pickled))
    with store.open(path, unknown="inert") as file:
        assert list(file) == []
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


def test_the_refusal_names_the_global(refused: Refused, zipped: Callable[..., bytes]) -> None:
    assert "posix.system" in str(refused(pt(zipped, PICKLES["posix_system"]), "x.pt"))


def test_shared_lists_without_tensors_cost_nothing(
    tmp_path: Path, zipped: Callable[..., bytes]
) -> None:
    # Sixty levels, each holding the one below twice: 2**60 paths.
    path = tmp_path / "x.pt"
    path.write_bytes(pt(zipped, b"\x80\x02N\x85" + b"2\x86" * 60 + b"."))
    with store.open(path) as file:
        assert list(file) == []


@pytest.mark.parametrize(
    "name", ["expanded_bomb", "many_lists", "text8_beyond_the_end", "storage_much_too_short"]
)
def test_memory_stays_bounded(name: str, tmp_path: Path, zipped: Callable[..., bytes]) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(pt(zipped, PICKLES[name]))
    tracemalloc.start()
    try:
        with pytest.raises(StoreError):
            store.open(path)
        assert tracemalloc.get_traced_memory()[1] < 128 << 20
    finally:
        tracemalloc.stop()


ARCHIVES: dict[str, dict[str, Any]] = {
    "encrypted": {"central": {2: {"flags": 1}}},
    "method_lzma": {"central": {2: {"method": 14}}, "local": {2: {"method": 14}}},
    "methods_differ": {"local": {2: {"method": 8}}},
    "sizes_differ": {"local": {2: {"size": 25}}},
    "stored_with_two_sizes": {"central": {2: {"size": 25}}, "local": {2: {"size": 25}}},
    "crc_of_data": {"central": {2: {"crc": 1}}},
    "crc_of_pickle": {"central": {0: {"crc": 1}}},
    "local_mark": {"local": {2: {"mark": 0}}},
    "central_mark": {"central": {2: {"mark": 0}}},
    "offset_of_another": {"central": {2: {"offset": 0}}},
    "offset_outside": {"central": {2: {"offset": 0xFFFFFFF0}}},
    "offset_64_missing": {"central": {2: {"offset": 0xFFFFFFFF}}},
    "size_64_missing": {"central": {2: {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}}},
    "packed_beyond_the_end": {
        "central": {2: {"packed": 1 << 30, "size": 1 << 30}},
        "local": {2: {"packed": 1 << 30, "size": 1 << 30}},
    },
    "local_extra_shifts_data": {"local": {2: {"extra": 60000}}},
    "overlaps_the_next": {
        "central": {2: {"packed": 60, "size": 60}},
        "local": {2: {"packed": 60, "size": 60}},
    },
    "name_too_long": {"central": {3: {"name": 9999}}},
    "other_disk": {"central": {2: {"disk": 3}}},
    "extra_beyond_the_end": {"central": {3: {"extra": 9999}}},
    "end_other_disk": {"end": {"disk": 1}},
    "end_more_members": {"end": {"here": 9, "number": 9}},
    "end_fewer_members": {"end": {"here": 1, "number": 1}},
    "end_counts_differ": {"end": {"here": 1}},
    "end_length": {"end": {"length": 10}},
    "end_begin": {"end": {"begin": 0}},
    "end_begin_outside": {"end": {"begin": 0xFFFFFFF0}},
    "end_comment": {"end": {"comment": 7}},
    "end_many_members": {"end": {"here": 65535, "number": 65535}},
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_corrupt_archive_is_refused(
    name: str, refused: Refused, zipped: Callable[..., bytes]
) -> None:
    refused(pt(zipped, GOOD, **ARCHIVES[name]), "x.pt")


MEMBERS: dict[str, list[tuple[str, bytes]]] = {
    "two_of_one_name": [("a/data.pkl", GOOD), ("a/data/0", W), ("a/data/0", W)],
    "two_pickles": [("a/data.pkl", GOOD), ("b/data.pkl", GOOD), ("a/data/0", W)],
    "no_pickle": [("a/version", b"3"), ("a/data/0", W)],
    "byteorder_middle": [("a/data.pkl", GOOD), ("a/byteorder", b"middle"), ("a/data/0", W)],
    "byteorder_long": [("a/data.pkl", GOOD), ("a/byteorder", b"little" * 100), ("a/data/0", W)],
}


@pytest.mark.parametrize("name", MEMBERS)
def test_wrong_members_are_refused(
    name: str, refused: Refused, zipped: Callable[..., bytes]
) -> None:
    refused(zipped(MEMBERS[name]), "x.pt")


def test_a_zip_bomb_is_refused(refused: Refused, zipped: Callable[..., bytes]) -> None:
    bomb = bytes(200 << 20)
    members = [("a/data.pkl", state(w=tensor(stored(numel=50 << 20)))), ("a/data/0", bomb)]
    data = zipped(members, deflate=True)
    assert len(data) < 1 << 20
    assert "unpack to too much" in str(refused(data, "x.pt"))
    # A size that deflate cannot reach is a lie, whatever is allowed.
    lie = zipped(
        [("a/data.pkl", GOOD), ("a/data/0", W)], deflate=True, central={1: {"size": 1 << 28}}
    )
    refused(lie, "y.pt", expansion=1e9)


def test_deflated_data_that_does_not_unpack_is_refused(
    refused: Refused, zipped: Callable[..., bytes]
) -> None:
    data = bytearray(pt(zipped, GOOD, data=random.Random(0).randbytes(24), deflate=True))
    at = data.index(b"a/data/0") + 8
    data[at : at + 4] = b"\xff\xff\xff\xff"
    refused(bytes(data), "x.pt")


@pytest.mark.parametrize("name", ["checkpoint_zip.pt", "checkpoint_legacy.pt"])
@pytest.mark.parametrize("part", range(20))
def test_a_truncated_file_is_refused(name: str, part: int, refused: Refused) -> None:
    data = (DATA / name).read_bytes()
    refused(data[: len(data) * part // 20], "x.pt", key="model")


def legacy(
    pickled: bytes,
    keys: bytes = b"](" + text("0") + b"e.",
    data: bytes | None = None,
    **parts: bytes,
) -> bytes:
    magic = parts.get("magic", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    protocol = parts.get("protocol", b"\x80\x02M\xe9\x03.")
    system = parts.get("system", b"\x80\x02}" + text("little_endian") + b"\x88s.")
    return (
        magic
        + protocol
        + system
        + pickled
        + keys
        + (struct.pack("<q", 6) + W if data is None else data)
    )


LEGACY: dict[str, bytes] = {
    "protocol": legacy(GOOD, protocol=b"\x80\x02K\1."),
    "system_is_no_dict": legacy(GOOD, system=b"N."),
    "endian_is_no_bool": legacy(GOOD, system=b"}" + text("little_endian") + b"K\1s."),
    "keys_are_no_list": legacy(GOOD, keys=b"N."),
    "keys_are_numbers": legacy(GOOD, keys=b"](K\0e."),
    "key_twice": legacy(GOOD, keys=b"](" + text("0") * 2 + b"e."),
    "key_unknown": legacy(GOOD, keys=b"](" + text("1") + b"e."),
    "key_missing": legacy(GOOD, keys=b"]."),
    "count_larger": legacy(GOOD, data=struct.pack("<q", 7) + W),
    "count_negative": legacy(GOOD, data=struct.pack("<q", -6) + W),
    "count_huge": legacy(GOOD, data=b"\xff" * 8 + W),
    "bytes_behind_the_end": legacy(GOOD) + b"x",
    "system_global": legacy(b"cos\nsystem\n(" + text("id") + b"tR."),
    "no_keys_pickle": legacy(GOOD)[:-60],
}


@pytest.mark.parametrize("name", LEGACY)
def test_a_hostile_legacy_file_is_refused(name: str, refused: Refused) -> None:
    refused(LEGACY[name], "x.pt")


def test_a_legacy_view_of_a_storage_is_read(tmp_path: Path) -> None:
    view = stored(tail=b"(" + text("v") + number(2) + number(4) + b"t")
    path = tmp_path / "x.pt"
    path.write_bytes(legacy(state(w=tensor(view, shape=tuple_of(2, 2), strides=tuple_of(2, 1)))))
    with store.open(path) as file:
        assert file["w"].tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_a_big_endian_file_is_read(tmp_path: Path, zipped: Callable[..., bytes]) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(
        zipped(
            [
                ("a/data.pkl", GOOD),
                ("a/byteorder", b"big"),
                ("a/data/0", struct.pack(">6f", *range(6))),
            ]
        )
    )
    with store.open(path) as file:
        assert file["w"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    "name", ["checkpoint_zip.pt", "checkpoint_legacy.pt", "strided_zip.pt", "protocol4.pt"]
)
def test_random_damage_ends_in_a_store_error_or_not_at_all(name: str, tmp_path: Path) -> None:
    good = (DATA / name).read_bytes()
    rng = random.Random(name)
    path = tmp_path / "x.pt"
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            with store.open(path, unknown=rng.choice(("refuse", "inert"))) as file:
                for key in file:
                    file.numpy(key)
        except StoreError:
            pass
