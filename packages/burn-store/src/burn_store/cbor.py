"""CBOR (RFC 8949), as much of it as burnpack's metadata needs; tags are skipped.

Plain Python values on both sides: int, float, bool, None, str, bytes, list, dict with text keys.
"""

from __future__ import annotations

import struct
from typing import Any

from burn_std import StoreError
from burn_store.elements import shortened

_MAX_DEPTH = 32
# A hundred thousand tensors have about fifteen items each.
_MAX_ITEMS = 1_500_000
_BREAK = object()


def encoded(value: Any) -> bytes:
    """Return the bytes of a value, every length definite and every integer as short as it goes.

    Example:
        >>> encoded({"a": [1, 300]}).hex()
        'a16161820119012c'
    """
    out = bytearray()
    _encode(value, out)
    return bytes(out)


def _head(major: int, number: int, out: bytearray) -> None:
    if number < 24:
        out.append(major << 5 | number)
    elif number < 1 << 8:
        out += struct.pack(">BB", major << 5 | 24, number)
    elif number < 1 << 16:
        out += struct.pack(">BH", major << 5 | 25, number)
    elif number < 1 << 32:
        out += struct.pack(">BI", major << 5 | 26, number)
    else:
        out += struct.pack(">BQ", major << 5 | 27, number)


def _encode(value: Any, out: bytearray) -> None:
    if value is None or isinstance(value, bool):
        out.append({None: 0xF6, True: 0xF5, False: 0xF4}[value])
    elif isinstance(value, int):
        _head(0, value, out) if value >= 0 else _head(1, -1 - value, out)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xFB, value)
    elif isinstance(value, str):
        raw = value.encode()
        _head(3, len(raw), out)
        out += raw
    elif isinstance(value, (list, tuple)):
        _head(4, len(value), out)
        for item in value:
            _encode(item, out)
    elif isinstance(value, dict):
        _head(5, len(value), out)
        for key, item in value.items():
            _encode(key, out)
            _encode(item, out)
    else:
        raise StoreError("store.save", "CBOR has no such value", got=type(value).__name__)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.items = 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise _bad("it ends inside a value")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def value(self, depth: int) -> Any:
        self.items += 1
        if depth > _MAX_DEPTH or self.items > _MAX_ITEMS:
            raise _bad(f"at most {_MAX_DEPTH} levels and {_MAX_ITEMS} values")
        first = self.take(1)[0]
        major, short = first >> 5, first & 31
        if major == 7:
            return self.simple(short)
        number = self.number(short)
        if number is None and major not in (2, 3, 4, 5):
            raise _bad("a length is there")
        if major == 0:
            return number
        if major == 1:
            return -1 - (number or 0)
        if major in (2, 3):
            return self.text(major, number, depth)
        if major == 4:
            return self.array(number, depth)
        if major == 5:
            return self.map(number, depth)
        # A tag says how to read what follows; none changes what burnpack holds.
        return self.value(depth + 1)

    def number(self, short: int) -> int | None:
        if short < 24:
            return short
        if short == 31:
            return None
        if short > 27:
            raise _bad("a length has 1, 2, 4 or 8 bytes")
        return int.from_bytes(self.take(1 << (short - 24)), "big")

    def simple(self, short: int) -> Any:
        if short in (20, 21):
            return short == 21
        if short in (22, 23):
            return None
        if short in (25, 26, 27):
            size = 1 << (short - 24)
            return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[size], self.take(size))[0]
        if short == 31:
            return _BREAK
        raise _bad("simple values are booleans, null and floats")

    def text(self, major: int, number: int | None, depth: int) -> str | bytes:
        if number is None:
            parts: list[Any] = []
            while (part := self.value(depth + 1)) is not _BREAK:
                if not isinstance(part, str if major == 3 else bytes):
                    raise _bad("pieces of a text are texts")
                parts.append(part)
            return "".join(parts) if major == 3 else b"".join(parts)
        raw = self.take(number)
        if major == 2:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _bad("text is UTF-8") from None

    def array(self, number: int | None, depth: int) -> list[Any]:
        made: list[Any] = []
        while number is None or len(made) < number:
            item = self.value(depth + 1)
            if item is _BREAK:
                if number is None:
                    break
                raise _bad("a list has as many items as it says")
            made.append(item)
        return made

    def map(self, number: int | None, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while number is None or len(made) < number:
            key = self.value(depth + 1)
            if key is _BREAK and number is None:
                break
            if not isinstance(key, str):
                raise _bad("keys are texts")
            if key in made:
                raise _bad(f"no key stands twice, {shortened(key)}")
            item = self.value(depth + 1)
            if item is _BREAK:
                raise _bad("every key has a value")
            made[key] = item
        return made


def _bad(rule: str) -> StoreError:
    return StoreError("store.open", f"the CBOR metadata is corrupt: {rule}")


def decoded(data: bytes) -> Any:
    """Return the one value that the bytes hold.

    Raises:
        StoreError: they hold no value, more than one, or one beyond the limits.

    Example:
        >>> decoded(bytes.fromhex("a161618201f5"))
        {'a': [1, True]}
    """
    decoder = _Decoder(data)
    made = decoder.value(0)
    if made is _BREAK or decoder.at != len(data):
        raise _bad("it is one value")
    return made
