"""Which tensors, and under which names: filters and regex renames over dotted paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from burn_std import StoreError

Select = (
    str
    | re.Pattern[str]
    | Callable[[str], bool]
    | Sequence["str | re.Pattern[str] | Callable[[str], bool]"]
)
Rename = Callable[[str], str] | Mapping[str, str] | Sequence[tuple["str | re.Pattern[str]", str]]


def _pattern(text: str | re.Pattern[str], what: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as cause:
        raise StoreError(
            "store", f"{what} is a regular expression", got=f"{text!r}: {cause}"
        ) from None


def selects(select: Select | None) -> Callable[[str], bool]:
    r"""Return the predicate of a filter.

    Args:
        select: a regular expression that is searched in the path, a compiled one, a predicate, or
            several of them of which one must hold; None chooses everything.

    Raises:
        StoreError: not a regular expression.

    Example:
        >>> chosen = selects([r"^encoder\.", lambda path: path.endswith("bias")])
        >>> chosen("encoder.0.weight"), chosen("head.bias"), chosen("head.weight")
        (True, True, False)
    """
    if select is None:
        return lambda path: True
    if isinstance(select, (str, re.Pattern)):
        search = _pattern(select, "a filter").search
        return lambda path: search(path) is not None
    if callable(select):
        return select
    parts = [selects(s) for s in select]
    return lambda path: any(p(path) for p in parts)


def renames(rename: Rename | None) -> Callable[[str], str]:
    r"""Return the function from a name in the file to a name in the model.

    Args:
        rename: a function; a mapping of whole names; or pairs of a regular expression and its
            replacement (`\1` for groups), each applied to what the one before made.

    Raises:
        StoreError: not a regular expression.

    Example:
        >>> renames([(r"^module\.", ""), (r"gamma$", "weight")])("module.norm.gamma")
        'norm.weight'
    """
    if rename is None:
        return lambda name: name
    if isinstance(rename, Mapping):
        table = dict(rename)
        return lambda name: table.get(name, name)
    if callable(rename):
        return rename
    pairs = [(_pattern(p, "a rename"), r) for p, r in rename]

    def renamed(name: str) -> str:
        for pattern, replacement in pairs:
            try:
                name = pattern.sub(replacement, name)
            except (re.error, IndexError) as cause:
                raise StoreError(
                    "store", "a replacement fits its expression", got=f"{replacement!r}: {cause}"
                ) from None
        return name

    return renamed


def renamed_names(names: Iterable[str], rename: Rename | None) -> dict[str, str]:
    """Return new name to old name.

    Raises:
        StoreError: two names become one.
    """
    function = renames(rename)
    made: dict[str, str] = {}
    for name in names:
        new = function(name)
        if new in made:
            raise StoreError(
                "store",
                "renaming keeps names apart",
                got=f"{made[new]} and {name} both become {new}",
            )
        made[new] = name
    return made


def contiguous_indices(names: Iterable[str]) -> dict[str, str]:
    """Return old name to new name with the numbers in paths counted from 0 without gaps.

    A PyTorch `Sequential` numbers layers without parameters too (`0, 2, 4`); a list of the layers
    that have some counts `0, 1, 2`. Pass the result as `rename=`.

    Example:
        >>> contiguous_indices(["net.0.w", "net.2.w", "net.2.sub.5.b"])
        {'net.0.w': 'net.0.w', 'net.2.w': 'net.1.w', 'net.2.sub.5.b': 'net.1.sub.0.b'}
    """
    names = list(names)
    numbers: dict[tuple[str, ...], set[int]] = {}
    for name in names:
        parts = name.split(".")
        for at, part in enumerate(parts):
            if part.isdecimal():
                numbers.setdefault(tuple(parts[:at]), set()).add(int(part))
    order = {head: {n: k for k, n in enumerate(sorted(found))} for head, found in numbers.items()}
    made = {}
    for name in names:
        parts = name.split(".")
        made[name] = ".".join(
            str(order[tuple(parts[:at])][int(part)]) if part.isdecimal() else part
            for at, part in enumerate(parts)
        )
    return made
