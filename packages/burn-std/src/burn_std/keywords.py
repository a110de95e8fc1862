"""Arguments by names that a function does not have: which it has, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

from burn_std.errors import ArgumentError
from burn_std.plugins import nearest

_VARIABLE, _OPEN = 0x04, 0x08  # flags of code with *args, with **kwargs


def unknown_keyword(
    op: str, function: Any, given: Iterable[str], otherwise: Mapping[str, str]
) -> ArgumentError | None:
    """Return the error of the first argument that a function does not take by name, or None.

    Args:
        op: the name under which the function speaks.
        function: a plain function; one with `**kwargs` takes every name.
        given: names of the arguments given by name.
        otherwise: what to write instead, by name.

    Example:
        >>> def total(x, dim=None): ...
        >>> str(unknown_keyword("total", total, ["axis"], {"axis": "Write dim=."}))
        "total: no argument has this name; got 'axis'. Write dim=."
        >>> unknown_keyword("total", total, ["dim"], {}) is None
        True
    """
    function = getattr(function, "__wrapped__", function)  # guarded ones take every name
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_flags & _OPEN:
        return None
    count = code.co_argcount + code.co_kwonlyargcount
    known = code.co_varnames[code.co_posonlyargcount : count]
    for name in given:
        if name in known:
            continue
        remedy = otherwise.get(name)
        if remedy is None and code.co_flags & _VARIABLE and code.co_varnames[count] == name:
            remedy = "Pass it without its name."
        if remedy is None:
            remedy = nearest(name, [k for k in known if k != "self"])
        return ArgumentError(op, "no argument has this name", got=repr(name), remedy=remedy)
    return None
