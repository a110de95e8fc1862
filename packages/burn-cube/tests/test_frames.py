"""Python functions as builtins: the same answers, references in balance, Python off the path."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress
from sys import getrefcount
from typing import Any

import pytest

from burn_cube import client
from burn_cube.runtime import frames as module

pytest.importorskip("llvmlite")


class Box:
    __slots__ = ("a", "b", "c")


class Derived(Box):
    __slots__ = ()


class Odd(Box):
    """Something else stands where the slot was."""

    __slots__ = ()
    a = property(lambda self: 7)  # type: ignore[assignment]


@pytest.fixture(scope="module")
def frames() -> Any:
    why = module.refusal()
    if why is not None:
        pytest.skip(why)
    made = client("cpu").runtime.frames()
    # On a Python that is known a failed trial is a fault, not a reason to leave.
    assert made.refused is None
    return made


TABLE = {1: "one", 2: "two"}
left: list[Any] = []


def slow(*args: Any) -> Any:
    left.append(args)
    return "slow"


def path(x, key):
    try:
        if x.a is None:
            return slow(x, key)
        name = TABLE[key]
    except AttributeError:
        return slow(x, key)
    made = Box()
    made.a = (name, x.a, len(TABLE))
    made.b = x.b if x.b is not None else x.a
    made.c = not x.a
    return made


def walk(rows, table):
    total = 0
    for name, value in rows:
        have = table.get(name)
        if have is None:
            table[name] = value
            continue
        if have > value and not total >= 100:
            total = total + have * value - 1
        elif have == value:
            break
        else:
            total = -total
    return total


def nested(rows):
    found = []
    for row in rows:
        for a, b in zip(row, rows):  # noqa: B905 - what is known here has no such argument
            if a == 2:
                continue
            found.append((a, b))
    return found


def caught(rows, key):
    out = []
    for row in rows:
        try:
            out.append(row[key])
        except Exception:  # noqa: BLE001 - it is what is tried
            out.append(None)
    return out


def box(a: Any, b: Any = None, cls: type = Box) -> Any:
    made = cls()
    made.a, made.b = a, b
    return made


def test_the_straight_path_gives_what_python_gives(frames: Any) -> None:
    native = frames.frame(path, True)
    assert native is not path
    for x in (box(1), box([], 3), box("s", None, Derived)):
        for key in TABLE:
            got, want = native(x, key), path(x, key)
            assert (got.a, got.b, got.c) == (want.a, want.b, want.c)
            assert got.__class__ is Box


def test_what_is_off_the_path_is_left_to_python(frames: Any) -> None:
    native = frames.frame(path, True)
    left.clear()
    unset, none = Box(), box(None)
    assert [native(unset, 1), native(none, 1), native(3, 1)] == ["slow"] * 3
    assert left == [(unset, 1), (none, 1), (3, 1)]
    odd = Odd.__new__(Odd)
    odd.b = 2
    assert native(odd, 1).a == ("one", 7, 2)
    with pytest.raises(KeyError) as error:
        native(box(1), 9)
    assert error.traceback[-1].name == "path"
    with pytest.raises(TypeError, match="unhashable"):
        native(box(1), [])
    with pytest.raises(TypeError, match="positional"):
        native(box(1))
    assert native(key=1, x=box(1)).a == ("one", 1, 2)


@pytest.mark.parametrize("rows", [
    [], [("a", 1)], [("a", 3), ("a", 2), ("a", 1), ("a", 4)], [("a", 3), ("a", 3), ("a", 1)],
    [("a", 50), ("a", 40), ("a", 1)], ((str(k % 5), k) for k in range(20)),
])  # fmt: skip
def test_loops_and_numbers(frames: Any, rows: Any) -> None:
    native, rows = frames.frame(walk, False), list(rows)
    assert native is not walk
    one: dict[str, int] = {}
    other: dict[str, int] = {}
    assert native(rows, one) == walk(rows, other)
    assert one == other
    assert native(tuple(rows), {}) == native(iter(rows), {}) == walk(rows, {})


def test_loops_inside_loops_and_errors_that_are_caught(frames: Any) -> None:
    native = frames.frame(nested, False)
    rows = ((1, 2, 3), (4, 2), ())
    assert native is not nested
    assert native(rows) == nested(rows)
    native = frames.frame(caught, False)
    assert native is not caught
    rows = [{"k": 1}, {}, None, {"k": 2}]
    assert native(rows, "k") == caught(rows, "k") == [1, None, None, 2]


def test_errors_are_those_of_python(frames: Any) -> None:
    native = frames.frame(walk, False)
    for rows in ([("a", 1, 2)], [1], [("a", 1), ("a", None)], [([], 1)]):
        with pytest.raises((ValueError, TypeError)) as want:
            walk(rows, {})
        with pytest.raises(want.type):
            native(rows, {})


def test_a_loop_sees_a_list_that_grows(frames: Any) -> None:
    def grow(items):
        n = 0
        for e in items:
            n = n + e
            if n < 5:
                items.append(1)
        return n

    native = frames.frame(grow, False)
    assert native is not grow
    assert native([1, 1]) == grow([1, 1])


def test_references_are_in_balance(frames: Any) -> None:
    def loop() -> None:
        for call, args in calls:
            with suppress(KeyError, TypeError, ValueError):
                call(*args)
        left.clear()

    shared, row, table = box(1, [2]), ("a", 3), {"k": 1}
    calls = [
        (frames.frame(path, True), (shared, 1)), (frames.frame(path, True), (shared, 9)),
        (frames.frame(path, True), (Box(), 1)), (frames.frame(path, True), (shared, [])),
        (frames.frame(walk, False), ([row, row, ("a", 1)], {})),
        (frames.frame(walk, False), ([row, 1], {})),
        (frames.frame(nested, False), ([row, row],)),
        (frames.frame(caught, False), ([table, None], "k")),
    ]  # fmt: skip
    loop()
    gc.collect()
    watched = [shared, shared.b, row, table, Box, TABLE, None, tuple]
    before, objects = [*map(getrefcount, watched)], len(gc.get_objects())
    for _ in range(10_000):
        loop()
    gc.collect()
    after = [*map(getrefcount, watched)]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 50
    assert abs(len(gc.get_objects()) - objects) < 50


def test_threads_share_a_frame(frames: Any) -> None:
    native, wrong = frames.frame(path, True), []

    def work(n: int) -> None:
        found = [native(box(n), 1).a for _ in range(5_000)]
        wrong.extend(a for a in found if a != ("one", n, 2))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_ctrl_c_is_not_taken_for_an_error(frames: Any) -> None:
    class Interrupted(dict):  # type: ignore[type-arg]
        def __missing__(self, key: Any) -> Any:
            raise KeyboardInterrupt

    def read(table, key):
        out = None
        try:
            out = table[key]
        except Exception:  # noqa: BLE001 - it is what is tried
            out = "caught"
        return out

    native = frames.frame(read, False)
    assert native is not read
    assert native({}, 1) == "caught"
    with pytest.raises(KeyboardInterrupt):
        native(Interrupted(), 1)


def test_what_is_not_known_stays_python(frames: Any) -> None:
    def comprehension(x):
        return [e + e for e in x]

    assert frames.frame(comprehension, True) is comprehension
    assert "ListComp" in frames.left[comprehension.__qualname__]
    assert frames.frame(len, True) is len


def test_another_python_runs_no_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = client("cpu").runtime.frames()._jit
    monkeypatch.setattr(module.sys, "version_info", (3, 99, 0))
    made = module.Frames(jit)
    assert made.refused is not None
    assert made.frame(path, True) is path


@pytest.mark.parametrize("error", [KeyboardInterrupt, TypeError, MemoryError])
def test_a_trial_that_does_not_end_is_none_that_went_well(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def broken(frame: Any) -> None:
        raise error

    made = module.Frames(client("cpu").runtime.frames()._jit)
    monkeypatch.setattr(module, "tried", broken)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            _ = made.refused
    assert made.refused is not None
    assert made.frame(path, True) is path
