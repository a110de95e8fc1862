"""JSON from files: bounded before it is parsed, and no name twice."""

from __future__ import annotations

import json
from typing import Any

from burn_std import StoreError
from burn_store.elements import shortened

# Three per tensor of a header. Parsed, an empty list takes thirty times its bytes.
_MAX_NESTED = 750_000


def parsed(raw: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object that the bytes hold.

    Args:
        raw: UTF-8 text.
        what: what it is, for the message.

    Raises:
        StoreError: not JSON, not an object, a name twice, or more lists and objects than sane.

    Example:
        >>> parsed(b'{"a": [1]}', "an index")
        {'a': [1]}
    """
    if raw.count(b"[") + raw.count(b"{") > _MAX_NESTED:
        raise StoreError("store.open", f"{what} has at most {_MAX_NESTED} lists and objects")
    try:
        made = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as cause:
        raise StoreError("store.open", f"{what} is JSON", got=shortened(str(cause))) from None
    if not isinstance(made, dict):
        raise StoreError("store.open", f"{what} is a JSON object", got=shortened(made))
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made
