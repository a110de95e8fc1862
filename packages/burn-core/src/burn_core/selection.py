"""Which parameters: by path, pattern, regular expression, id or predicate.

One selection serves freezing, parameter groups of optimizers and schedules, LoRA and quantisation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

from burn_core.parameter import Parameter
from burn_std import ArgumentError, ConfigError

Predicate = Callable[[str, Parameter], bool]


class ParamGroup:
    """A set of parameters, said by a rule; join with `|`, `&`, `-`, and invert with `~`.

    Make one with `ParamGroup.all()`, `.path`, `.regex`, `.ids` or `.predicate`, or let `group_of`
    make it of what a user passes.

    Example:
        >>> model = burn.nn.Sequential(burn.nn.Linear(2, 3), burn.nn.Linear(3, 1))
        >>> group = burn.core.ParamGroup.path("0") - burn.core.ParamGroup.regex("bias$")
        >>> [path for path, _ in model.select(group)]
        ['0.weight']
    """

    __slots__ = ("_data", "_matches")

    def __init__(self, matches: Predicate, data: dict[str, Any] | None) -> None:
        self._matches = matches
        self._data = data

    # ---- kinds --------------------------------------------------------------------------------

    @staticmethod
    def all() -> ParamGroup:
        """Return the group of all parameters.

        Example:
            >>> burn.core.ParamGroup.all().to_dict()
            {'all': True}
        """
        return ParamGroup(lambda path, p: True, {"all": True})

    @staticmethod
    def path(*paths: str) -> ParamGroup:
        """Return the group of what stands at or under the paths.

        Args:
            paths: dotted names, `encoder.layers.0`; with `*` and `?` a pattern of the whole path.

        Example:
            >>> burn.core.ParamGroup.path("layers.*.bias").to_dict()
            {'path': ['layers.*.bias']}
        """

        def matches(path: str, p: Parameter) -> bool:
            return any(_under(path, wanted) for wanted in paths)

        return ParamGroup(matches, {"path": list(paths)})

    @staticmethod
    def regex(*patterns: str | re.Pattern[str]) -> ParamGroup:
        """Return the group of paths in which a regular expression is found.

        Args:
            patterns: one of them suffices.

        Raises:
            ArgumentError: a text is no regular expression.

        Example:
            >>> burn.core.ParamGroup.regex("bias$").to_dict()
            {'regex': ['bias$']}
        """
        try:
            compiled = [re.compile(p) for p in patterns]
        except re.error as cause:
            raise ArgumentError(
                "ParamGroup.regex", "needs a regular expression", got=f"{patterns}: {cause}"
            ) from cause

        def matches(path: str, p: Parameter) -> bool:
            return any(c.search(path) for c in compiled)

        return ParamGroup(matches, {"regex": [_text(c) for c in compiled]})

    @staticmethod
    def ids(ids: Iterable[str]) -> ParamGroup:
        """Return the group of parameters with these ids.

        Args:
            ids: `Parameter.id` of each.

        Example:
            >>> layer = burn.nn.Linear(1, 1)
            >>> group = burn.core.ParamGroup.ids([layer.bias.id])
            >>> [path for path, _ in layer.select(group)]
            ['bias']
        """
        wanted = frozenset(ids)
        return ParamGroup(lambda path, p: p.id in wanted, {"ids": sorted(wanted)})

    @staticmethod
    def predicate(fn: Predicate) -> ParamGroup:
        """Return the group for which a function of (path, parameter) is true.

        Args:
            fn: the function; such a group cannot be saved.

        Example:
            >>> group = burn.core.ParamGroup.predicate(lambda path, p: len(p.shape) > 1)
            >>> [path for path, _ in burn.nn.Linear(1, 1).select(group)]
            ['weight']
        """
        return ParamGroup(fn, None)

    # ---- use ----------------------------------------------------------------------------------

    def matches(self, path: str, parameter: Parameter) -> bool:
        """Return whether a parameter belongs to the group.

        Args:
            path: its path in the model.
            parameter: the parameter.
        """
        return bool(self._matches(path, parameter))

    def __or__(self, other: ParamGroup) -> ParamGroup:
        return _joined("any", (self, other), lambda a, b: a or b)

    def __and__(self, other: ParamGroup) -> ParamGroup:
        return _joined("every", (self, other), lambda a, b: a and b)

    def __invert__(self) -> ParamGroup:
        data = None if self._data is None else {"not": self._data}
        return ParamGroup(lambda path, p: not self._matches(path, p), data)

    def __sub__(self, other: ParamGroup) -> ParamGroup:
        return self & ~other

    # ---- saving -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form.

        Raises:
            ConfigError: the group was made of a function.
        """
        if self._data is None:
            raise ConfigError(
                "ParamGroup", "a group made of a function cannot be saved",
                remedy="Say it by path or regular expression.",
            )  # fmt: skip
        return self._data

    @staticmethod
    def from_dict(data: dict[str, Any]) -> ParamGroup:
        """Return the group of its JSON-able form.

        Args:
            data: what `to_dict` returned.

        Raises:
            ConfigError: the form is unknown.

        Example:
            >>> burn.core.ParamGroup.from_dict({"not": {"path": ["head"]}}).to_dict()
            {'not': {'path': ['head']}}
        """
        match data:
            case {"all": True}:
                return ParamGroup.all()
            case {"path": [*paths]}:
                return ParamGroup.path(*paths)
            case {"regex": [*patterns]}:
                return ParamGroup.regex(*patterns)
            case {"ids": [*ids]}:
                return ParamGroup.ids(ids)
            case {"not": inner}:
                return ~ParamGroup.from_dict(inner)
            case {"any": [a, b]}:
                return ParamGroup.from_dict(a) | ParamGroup.from_dict(b)
            case {"every": [a, b]}:
                return ParamGroup.from_dict(a) & ParamGroup.from_dict(b)
        raise ConfigError("ParamGroup", "the form is unknown", got=data)

    def __reduce__(self) -> Any:
        # An optimizer with groups goes to another process; functions of users may go too.
        if self._data is None:
            return ParamGroup, (self._matches, None)
        return ParamGroup.from_dict, (self._data,)

    def __repr__(self) -> str:
        return f"ParamGroup({'<function>' if self._data is None else self._data})"


Selector = ParamGroup | str | re.Pattern[str] | Predicate | Iterable[str]


def group_of(selector: Selector | None) -> ParamGroup:
    """Return the group of what a user passes.

    Args:
        selector: a group; a path (empty for all); a compiled regular expression; a function of
            (path, parameter); several paths; None for all.

    Raises:
        ArgumentError: none of these.

    Example:
        >>> burn.core.group_of("encoder")
        ParamGroup({'path': ['encoder']})
    """
    if isinstance(selector, ParamGroup):
        return selector
    if selector is None or selector == "":
        return ParamGroup.all()
    if isinstance(selector, str):
        return ParamGroup.path(selector)
    if isinstance(selector, re.Pattern):
        return ParamGroup.regex(selector)
    if callable(selector):
        return ParamGroup.predicate(selector)
    paths: list[Any] = list(selector) if hasattr(selector, "__iter__") else [None]
    if not all(isinstance(p, str) for p in paths):
        raise ArgumentError(
            "select", "takes a path, paths, a regular expression, a function or a ParamGroup",
            got=type(selector).__name__,
        )  # fmt: skip
    return ParamGroup.path(*paths)


def _text(pattern: re.Pattern[str]) -> str:
    """Return a pattern with its flags inside."""
    flags = "".join(f for f, bit in (("i", re.I), ("x", re.X), ("s", re.S)) if pattern.flags & bit)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


def _under(path: str, wanted: str) -> bool:
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(path, wanted)
    return not wanted or path == wanted or path.startswith(f"{wanted}.")


def _joined(
    word: str, pair: tuple[ParamGroup, ParamGroup], join: Callable[[bool, bool], bool]
) -> ParamGroup:
    a, b = pair
    data = None if a._data is None or b._data is None else {word: [a._data, b._data]}
    return ParamGroup(lambda path, p: join(a._matches(path, p), b._matches(path, p)), data)
