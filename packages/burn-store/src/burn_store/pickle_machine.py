"""A reader of pickles that executes nothing: a closed list of opcodes, over plain values.

The opcodes are those of Python's `pickletools`, protocols 0 to 5, without the ones that name or
build arbitrary objects in ways PyTorch never writes (`INST`, `OBJ`, `PERSID`, `EXT*`, buffers).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from burn_std import StoreError
from burn_store.elements import shortened
from burn_store.pickled import Inert, Named, TensorRef, called, checked_key, named, persistent

MAX_ITEMS: Final = 1_000_000
# A collection costs memory and the garbage collector's time, so there may be fewer of them.
_ITEMS_PER_COLLECTION: Final = 4
_MAX_TEXT: Final = 64 << 20
_WINDOW: Final = 1 << 16


class _Mark:
    """The place on the stack where a collection begins."""


_MARK: Final = _Mark()


class Cursor:
    """A position in bytes that are fetched in windows.

    Args:
        fetch: returns bytes `(offset, size)`.
        at: where to begin.
        end: byte after the last.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], at: int, end: int) -> None:
        self._fetch = fetch
        self._end = end
        self._base = at
        self._window = b""
        self._at = 0

    @property
    def position(self) -> int:
        """The offset of the next byte."""
        return self._base + self._at

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            StoreError: there are not that many, or more than any text may have.
        """
        at = self._at
        end = at + size
        if end > len(self._window):
            left = self._end - self._base - at
            if size > left or size > _MAX_TEXT:
                raise _bad("it ends inside a value", f"{size} bytes wanted, {left} left")
            self._base += at
            self._window = self._fetch(self._base, min(max(size, _WINDOW), left))
            at, end = 0, size
        self._at = end
        return self._window[at:end]

    def line(self) -> bytes:
        """Return the bytes up to the next line feed, without it."""
        out = bytearray()
        while (byte := self.take(1)) != b"\n":
            out += byte
            if len(out) > 4096:
                raise _bad("a line has at most 4096 bytes", bytes(out[:40]))
        return bytes(out)


def _bad(rule: str, got: object = None) -> StoreError:
    return StoreError(
        "store.open", f"the pickle is corrupt: {rule}", got=None if got is None else shortened(got)
    )


class Machine:
    """The stack and the memo of one pickle.

    Args:
        cursor: where the pickle begins; stands behind it when `run` returns.
        lenient: unknown globals become inert objects.
        limit: opcodes at most.
    """

    def __init__(self, cursor: Cursor, lenient: bool = False, limit: int = MAX_ITEMS) -> None:
        self.cursor = cursor
        self.lenient = lenient
        self.limit = limit
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.collections = 0
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Return the value that the pickle stands for.

        Raises:
            StoreError: the pickle is corrupt, or names what is not on the list.
        """
        take, stack, operations = self.cursor.take, self.stack, _OPERATIONS
        for _ in range(self.limit):
            code = take(1)
            if code == b".":
                if len(stack) != 1 or stack[0] is _MARK:
                    raise _bad("it ends with one value", len(stack))
                return stack[0]
            operation = operations.get(code)
            if operation is None:
                raise _bad("this opcode is not on the list", code)
            try:
                operation(self)
            except IndexError:
                raise _bad("an opcode finds its values on the stack", code) from None
            except (struct.error, UnicodeDecodeError, ValueError) as cause:
                raise _bad("a value has the form of its opcode", f"{code!r}: {cause}") from None
        raise self._too_many()

    def _too_many(self) -> StoreError:
        return StoreError(
            "store.open",
            f"a pickle has at most {self.limit} opcodes, a quarter of them collections",
            got=f"byte {self.cursor.position}",
            remedy="Pass max_items= if you know where the file comes from.",
        )

    # ---- the stack ----------------------------------------------------------------------------

    def _push(self, value: Any) -> None:
        self.stack.append(value)

    def _collect(self, value: Any) -> None:
        self.collections += 1
        if self.collections * _ITEMS_PER_COLLECTION > self.limit:
            raise self._too_many()
        self.stack.append(value)

    def _pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise _bad("an opcode finds its values on the stack", "a mark")
        return value

    def _top(self) -> Any:
        value = self.stack[-1]
        if value is _MARK:
            raise _bad("an opcode finds its values on the stack", "a mark")
        return value

    def _mark(self) -> None:
        self.marks.append(len(self.stack))
        self.stack.append(_MARK)

    def _since_mark(self) -> list[Any]:
        """Return the values above the last mark, and take both away."""
        at = self.marks.pop()
        if at >= len(self.stack) or self.stack[at] is not _MARK:
            raise _bad("a mark stands where it was set")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self.cursor.take(struct.calcsize(form)))[0]

    def _text(self, form: str) -> None:
        self._push(self.cursor.take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _raw(self, form: str) -> None:
        self._push(self.cursor.take(self._number(form)))

    def _old_text(self, form: str) -> None:
        # Text of Python 2: keys are ASCII, other bytes keep their number.
        self._push(self.cursor.take(self._number(form)).decode("latin1"))

    def _pop_top(self) -> None:
        if self.stack.pop() is _MARK:
            self.marks.pop()

    # ---- collections --------------------------------------------------------------------------

    def _tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self._collect(tuple(reversed(values)))

    def _extend(self, values: list[Any]) -> None:
        target = self._top()
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Inert):
            raise _bad("items go into a list", target)

    def _set_items(self, values: list[Any]) -> None:
        target = self._top()
        if len(values) % 2:
            raise _bad("keys and values come in pairs", len(values))
        if isinstance(target, dict):
            for at in range(0, len(values), 2):
                target[checked_key(values[at])] = values[at + 1]
        elif not isinstance(target, Inert):
            raise _bad("keys and values go into a dict", target)

    def _append(self) -> None:
        value = self._pop()
        self._extend([value])

    def _set_item(self) -> None:
        value = self._pop()
        key = self._pop()
        self._set_items([key, value])

    def _new_dict(self) -> None:
        values = self._since_mark()
        self._collect({})
        self._set_items(values)

    # ---- the memo -----------------------------------------------------------------------------

    def _remember(self, key: int) -> None:
        self.memo[key] = self._top()

    def _recall(self, key: int) -> None:
        if key not in self.memo:
            raise _bad("the memo has what is recalled", key)
        self._push(self.memo[key])

    # ---- globals ------------------------------------------------------------------------------

    def _global_line(self) -> None:
        module, name = self.cursor.line().decode(), self.cursor.line().decode()
        self._push(named(module, name, self.lenient))

    def _global_stack(self) -> None:
        name = self._pop()
        self._push(named(self._pop(), name, self.lenient))

    def _reduce(self) -> None:
        args = self._pop()
        self._collect(called(self._pop(), args))

    def _new_object(self) -> None:
        args = self._pop()
        kind = self._pop()
        if not isinstance(kind, Named) or type(args) is not tuple:
            raise _bad("an object has a class and a tuple of arguments", kind)
        self._collect(called(kind, args))

    def _new_object_with_names(self) -> None:
        if not isinstance(self._pop(), dict):
            raise _bad("arguments by name are a dict")
        self._new_object()

    def _build(self) -> None:
        state = self._pop()
        target = self._top()
        if isinstance(target, Inert):
            target.state = state
        elif not isinstance(target, (dict, TensorRef)):
            # A dict's attributes (`_metadata` of a state dict) and a tensor's are not needed.
            raise _bad("a state is set on an object", target)

    def _persistent(self) -> None:
        self._push(persistent(self._pop()))


def _integer(machine: Machine, size: int) -> None:
    if not 0 <= size <= 1024:
        raise _bad("an integer has at most 1024 bytes", size)
    machine._push(int.from_bytes(machine.cursor.take(size), "little", signed=True))


def _integer_line(machine: Machine) -> None:
    line = machine.cursor.line()
    # Protocol 0 writes booleans as the integers 00 and 01.
    machine._push(
        {b"00": False, b"01": True}[line]
        if line in (b"00", b"01")
        else int(line.removesuffix(b"L"))
    )


def _protocol(machine: Machine) -> None:
    if machine._number("<B") > 5:
        raise _bad("protocols go up to 5")


_OPERATIONS: Final[dict[bytes, Callable[[Machine], None]]] = {
    b"\x80": _protocol,
    b"\x95": lambda m: m._number("<Q"),
    b"(": Machine._mark,
    b"0": Machine._pop_top,
    b"1": lambda m: m._since_mark().clear(),
    b"2": lambda m: m._push(m._top()),
    b"N": lambda m: m._push(None),
    b"\x88": lambda m: m._push(True),
    b"\x89": lambda m: m._push(False),
    b"J": lambda m: m._push(m._number("<i")),
    b"K": lambda m: m._push(m._number("<B")),
    b"M": lambda m: m._push(m._number("<H")),
    b"\x8a": lambda m: _integer(m, m._number("<B")),
    b"\x8b": lambda m: _integer(m, m._number("<i")),
    b"I": _integer_line,
    b"L": _integer_line,
    b"F": lambda m: m._push(float(m.cursor.line())),
    b"G": lambda m: m._push(m._number(">d")),
    b"X": lambda m: m._text("<I"),
    b"\x8c": lambda m: m._text("<B"),
    b"\x8d": lambda m: m._text("<Q"),
    b"V": lambda m: m._push(m.cursor.line().decode("raw-unicode-escape")),
    b"U": lambda m: m._old_text("<B"),
    b"T": lambda m: m._old_text("<I"),
    b"C": lambda m: m._raw("<B"),
    b"B": lambda m: m._raw("<I"),
    b"\x8e": lambda m: m._raw("<Q"),
    b"\x96": lambda m: m._raw("<Q"),
    b"]": lambda m: m._collect([]),
    b")": lambda m: m._push(()),
    b"}": lambda m: m._collect({}),
    b"\x8f": lambda m: m._collect([]),
    b"\x91": lambda m: m._collect(m._since_mark()),
    b"a": Machine._append,
    b"e": lambda m: m._extend(m._since_mark()),
    b"\x90": lambda m: m._extend(m._since_mark()),
    b"l": lambda m: m._collect(m._since_mark()),
    b"d": Machine._new_dict,
    b"t": lambda m: m._collect(tuple(m._since_mark())),
    b"\x85": lambda m: m._tuple_of(1),
    b"\x86": lambda m: m._tuple_of(2),
    b"\x87": lambda m: m._tuple_of(3),
    b"s": Machine._set_item,
    b"u": lambda m: m._set_items(m._since_mark()),
    b"p": lambda m: m._remember(int(m.cursor.line())),
    b"q": lambda m: m._remember(m._number("<B")),
    b"r": lambda m: m._remember(m._number("<I")),
    b"\x94": lambda m: m._remember(len(m.memo)),
    b"g": lambda m: m._recall(int(m.cursor.line())),
    b"h": lambda m: m._recall(m._number("<B")),
    b"j": lambda m: m._recall(m._number("<I")),
    b"c": Machine._global_line,
    b"\x93": Machine._global_stack,
    b"R": Machine._reduce,
    b"b": Machine._build,
    b"\x81": Machine._new_object,
    b"\x92": Machine._new_object_with_names,
    b"Q": Machine._persistent,
}
