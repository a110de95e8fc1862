"""What stands between a user's line and the library: wrong arguments get words, tracebacks end.

A guarded function has the signature of its body and costs one more call. An argument by a name that
the body does not have is a typed error with the remedy. When the body raises, a typed error loses
the frames below the user's line, and anything else (an AttributeError of an array that stands for
a tensor, a TypeError of numpy) becomes the typed error of the first argument that is not what its
annotation says. An exception that no argument explains is a defect of ours: it passes with its
traceback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from operator import index
from types import CodeType, FunctionType, UnionType
from typing import Any, TypeVar, cast

from burn_backend import TensorBase
from burn_dispatch import Device, plain_scalar, too_large
from burn_std import (
    ArgumentError,
    BurnError,
    DType,
    DTypeError,
    ExecutionError,
    dtype_remedy,
    unknown_keyword,
)

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
Check = Callable[[Any], bool]


# ---- what annotations ask for ------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    if isinstance(value, TensorBase):
        return not value.shape
    return plain_scalar(value) is not None


def _is_int(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


def _all(check: Check) -> Check:
    return lambda value: isinstance(value, (tuple, list)) and all(check(v) for v in value)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def _is_ints(value: Any) -> bool:
    if _is_tensor(value):
        return bool(value.dtype.is_int)
    return _is_int(value) or _all(_is_int)(value)


_NUMBER = ("a number", _is_number)
_INTS = ("an integer or a tuple of them", _is_ints)
_CHECKS: dict[str, tuple[str, Check]] = {
    "Tensor": ("a tensor", _is_tensor),
    "None": ("None", lambda value: value is None),
    "bool": ("a bool", lambda value: plain_scalar(value) in (True, False)),
    "int": ("an integer", _is_int),
    "float": _NUMBER,
    "Number": _NUMBER,
    "str": ("a string", lambda value: isinstance(value, str)),
    "Ints": _INTS,
    "Extent": _INTS,
    "Dim": ("a dim, a tuple of dims or None", lambda value: value is None or _is_ints(value)),
    "DType": ("a dtype", lambda value: isinstance(value, DType)),
    "Device": ("a device", lambda value: isinstance(value, Device)),
    "Callable": ("a function", callable),
}
# `collections.abc.Sequence[int]` is how an alias prints.
_DOTTED = re.compile(r"\b(?:\w+\.)+")
_MAPS = ("Mapping[", "dict[")
_LISTS = ("Sequence[", "list[", "tuple[", "Iterable[")
_MANY = {
    "a tensor": "tensors", "an integer": "integers", "a number": "numbers", "None": "None",
    "a string": "strings", "a bool": "bools",
}  # fmt: skip


def _alternatives(annotation: str) -> list[str]:
    """Return the parts of a union, brackets respected; `Callable[...]` is cut to its name."""
    out, depth, part = [], 0, ""
    for letter in annotation + "|":
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            part = part.strip()
            out.append("Callable" if part.startswith("Callable[") else part)
            part = ""
        else:
            part += letter
    return out


def _checks(annotation: str, scope: dict[str, Any]) -> list[tuple[str, Check]] | None:
    """Return what an annotation asks for, in words and as tests; None where it says too little.

    Args:
        annotation: as written.
        scope: globals of the function, where aliases stand.
    """
    out: list[tuple[str, Check]] = []
    for part in _alternatives(annotation):
        if part in _CHECKS:
            out.append(_CHECKS[part])
        elif part.startswith(_MAPS):
            out.append(("a dict", lambda value: isinstance(value, Mapping)))
        elif part.startswith(_LISTS):
            inner = _first(part[part.index("[") + 1 : -1])
            known = _checks(inner, scope)
            if known is None:
                return None
            words = " or ".join([_MANY.get(w, w) for w, _ in known])
            out.append((f"a list of {words}", _all(_any(known))))
        else:
            more = _of_alias(scope.get(part))
            if more is None:
                return None
            out += more
    return out


def _first(inner: str) -> str:
    """Return what an annotation of a list says of its first element, brackets respected."""
    depth = 0
    for at, letter in enumerate(inner):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            return inner[:at]
    return inner


def _of_alias(alias: Any) -> list[tuple[str, Check]] | None:
    """Return what the name of a class, a union of classes or another annotation asks for."""
    several = getattr(alias, "__constraints__", ()) or (
        alias.__args__ if isinstance(alias, UnionType) else ()
    )
    if several:
        found = [_of_alias(t) for t in several]
        return None if None in found else [c for f in found if f for c in f]
    if alias is None or alias is Any:
        return None
    if isinstance(alias, type):
        name = alias.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        checks = _CHECKS.get(name, (f"{article} {name}", lambda value: isinstance(value, alias)))
        return [checks]
    return _checks(_DOTTED.sub("", str(alias)), {})


def _any(checks: list[tuple[str, Check]]) -> Check:
    return lambda value: any(check(value) for _, check in checks)


def _complaint(
    op: str, name: str, annotation: str, value: Any, scope: dict[str, Any]
) -> DTypeError | None:
    """Return the error of an argument that is not what its annotation says, else None."""
    checks = _checks(annotation, scope)
    if checks is None or _any(checks)(value):
        return None
    words = " or ".join(dict.fromkeys(w for w, _ in checks))
    tensor = checks[0][1] is _is_tensor
    return DTypeError(
        op, f"{name} must be {words}", got=_shown(value),
        remedy="Make one with burn.tensor(...)." if tensor and not callable(value) else None,
    )  # fmt: skip


def _shown(value: Any) -> str:
    """Return a value in a few letters: what a message needs, not all that it holds."""
    if isinstance(value, TensorBase):
        return f"a tensor {value.dtype.name}{list(value.shape)}"
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, int, float, str, tuple)):
        text = repr(value)
        return text if len(text) <= 60 and value is None else f"{kind} {text[:60]}"
    return kind


def explained(
    cause: Exception, body: Any, names: tuple[str, ...] = (), values: Any = (),
    op: str | None = None,
) -> Exception:  # fmt: skip
    """Return what a guarded function raises in place of `cause`.

    Args:
        cause: what the body raised.
        body: the guarded function.
        names: its parameters.
        values: their values.
        op: what an error names; the body if None.
    """
    of_layer, op = op is not None, op or body.__name__
    wrong = dict(zip(names, values, strict=True)).get("dtype")
    if wrong is not None and not isinstance(wrong, DType):
        # Said here, since a function that calls an operation has a name of its own.
        shown = repr(wrong) if isinstance(wrong, (str, type)) else type(wrong).__name__
        error = DTypeError(op, "dtype must be a dtype", got=shown, remedy=dtype_remedy(wrong))
        error.__suppress_context__ = True
        return error
    typed = isinstance(cause, BurnError)
    if isinstance(cause, BurnError):
        cause.__suppress_context__ = True
        if any("Callable" in str(a) or "Module" in str(a) for a in body.__annotations__.values()):
            return cause  # what the user wrote may have raised it, and its frames matter
        # A layer names its own argument, where what it called speaks of another.
        own = not of_layer or cause.op.startswith(op)
        if not isinstance(cause, ExecutionError) and own:
            return cause.with_traceback(None)
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        # Only `self` has no annotation, and it may have another name.
        annotation = body.__annotations__.get(name, "Any" if place else "Tensor")
        complaint = _complaint(op, name, str(annotation), value, body.__globals__)
        if complaint is not None:
            complaint.__suppress_context__ = True
            return complaint
    if typed:
        return cause.with_traceback(None)
    large = too_large(op, cause)
    if large is None:
        return cause
    large.__cause__ = cause
    return large


# What PyTorch and numpy call an argument, and what to write instead.
_OTHERWISE = dict.fromkeys(("axis", "axes"), "Write dim=.") | dict.fromkeys(
    ("layout", "memory_format", "pin_memory", "names"),
    "Leave it out: layouts, pinned memory and names of dims are no part of a tensor.",
) | {
    "keepdims": "Write keepdim=.",
    "requires_grad": "Make it on a device with autodiff, and mark it: "
    "burn.tensor(data, device=burn.Device.default().autodiff()).require_grad().",
    "generator": "Write burn.manual_seed(seed), or device.seed(seed), before.",
    "out": "Values never change in place: bind the result.",
    "inplace": "Values never change in place: bind the result.",
}  # fmt: skip


def refused(body: Any, given: Iterable[str], op: str | None = None) -> Exception:
    """Return the error of a call with arguments by names that a function does not have.

    Args:
        body: the function.
        given: the names.
        op: the name under which it speaks; its own if None.
    """
    name = op or body.__name__
    error = unknown_keyword(name, body, given, _OTHERWISE)
    return error or ArgumentError(name, "no argument has this name", got=list(given))


# ---- the wrapper -------------------------------------------------------------------------------

_STARS = 0x04 | 0x08  # flags of code with *args or **kwargs
_TEMPLATES: dict[tuple[int, int], CodeType] = {}


def _template(plain: int, named: int) -> CodeType:
    """Return the code of a wrapper with so many parameters; compiling one for each takes longer."""
    found = _TEMPLATES.get((plain, named))
    if found is None:
        names = [f"p{i}" for i in range(plain + named)]
        before, after = names[:plain], names[plain:]
        # Names of their own, which no body has.
        head = ", ".join([*before, *(["*", *after] if after else []), "**others_"])
        call = ", ".join([*before, *(f"{n}={n}" for n in after)])
        source = (
            f"def wrapper({head}):\n"
            f" if others_: raise REFUSED(BODY, others_)\n"
            f" try: return BODY({call})\n"
            f" except Exception as e: raise EXPLAINED(e, BODY, NAMES, ({', '.join(names)},))\n"
        )
        made: dict[str, Any] = {}
        exec(compile(source, __file__, "exec"), made)
        found = _TEMPLATES[plain, named] = made["wrapper"].__code__
    return found


def _at_one_line(units: int) -> bytes:
    """Return the line table of code that stands on its first line, of no column.

    So a traceback shows the `def` of the body. An entry covers eight units and has two bytes: the
    kind "no column" (13) with the number of units, and how far the line moves.
    """
    sizes = [8] * (units // 8) + ([units % 8] if units % 8 else [])
    return bytes([b for size in sizes for b in (0x80 | 13 << 3 | size - 1, 0)])


def _wrapper(body: FunctionType, names: tuple[str, ...]) -> FunctionType:
    own = body.__code__
    plain, named = own.co_argcount, own.co_kwonlyargcount
    code = _template(plain, named)
    keywords = tuple([f"p{i}" for i in range(plain, plain + named)])
    code = code.replace(
        co_varnames=(*names, *code.co_varnames[plain + named :]),
        co_consts=tuple([names[plain:] if c == keywords else c for c in code.co_consts]),
        co_name=own.co_name,
        co_qualname=own.co_qualname,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
        co_linetable=_at_one_line(len(code.co_code) // 2),
    )
    scope = {"BODY": body, "EXPLAINED": explained, "NAMES": names, "REFUSED": refused}
    made = FunctionType(code, scope, body.__name__, body.__defaults__)
    made.__kwdefaults__ = body.__kwdefaults__
    return made


def _loose(body: FunctionType) -> Callable[..., Any]:
    """Return the wrapper of a body with `*args` or `**kwargs`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return body(*args, **kwargs)
        except Exception as e:  # noqa: BLE001 - raised again, typed where an argument explains it
            raise explained_call(e, body, args, kwargs)  # noqa: B904 - it decides

    return wrapper


def explained_call(
    cause: Exception, body: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
    op: str | None = None,
) -> Exception:  # fmt: skip
    """Return what a call raises in place of `cause`: `explained`, of arguments as they were given.

    Args:
        cause: what the body raised.
        body: a function or a method.
        args: positional arguments, of a method with the object it is called on.
        kwargs: keyword arguments.
        op: what an error names where `self` is no tensor but a module; the body if None.
    """
    from inspect import signature  # not at import: it takes longer than the rest of this module

    try:
        given = signature(body).bind(*args, **kwargs).arguments
    except (
        TypeError,
        ValueError,
    ):  # not called as written: Python's own words, unless a name explains it
        return unknown_keyword(op or body.__name__, body, kwargs, _OTHERWISE) or cause
    code = getattr(body, "__code__", None)
    if code is None:  # a constructor of Python's own
        return cause
    stars = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    names = tuple([n for n in given if n not in stars and not (op and n == "self")])
    return explained(cause, body, names, [given[n] for n in names], op)


def guarded(function: F, *, module: str | None = None, first: str | None = None) -> F:
    """Return a function whose wrong arguments get typed errors.

    Args:
        function: the body.
        module: where the result is public, if not where the body stands.
        first: another name for the first parameter.
    """
    body = cast("FunctionType", getattr(function, "__wrapped__", function))
    code = body.__code__
    if code.co_flags & _STARS:
        made: Any = _loose(body)
    else:
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        made = _wrapper(body, (first, *names[1:]) if first else names)
    update_wrapper(made, body)
    if first:
        made.__annotations__ = {first: "Tensor", **made.__annotations__}
    if module:
        made.__module__ = module
    return cast("F", made)


def guard_methods(bare: str = "", always: str = "") -> Callable[[C], C]:
    """Return a decorator that guards the public methods of a class that take arguments.

    Args:
        bare: names of those that hand their arguments to one operation, which checks them, and
            of those that guard themselves because every nanosecond counts.
        always: names of those without arguments that are guarded too: they wait for values, and
            may meet the errors of what was recorded before.
    """

    def decorate(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                code = method.__code__
                more = code.co_argcount + code.co_kwonlyargcount > 1 or name in always.split()
                if more and name not in bare.split():
                    setattr(cls, name, guarded(method))
        return cls

    return decorate


def guard_constructors(scope: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the constructors of the public classes of a module."""
    for name in names:
        found = scope.get(name)
        body = vars(found).get("__init__") if isinstance(found, type) else None
        if isinstance(body, FunctionType) and not hasattr(body, "__wrapped__"):
            found.__init__ = _constructor(body)  # type: ignore[misc]


def _constructor(body: FunctionType) -> Callable[..., None]:
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            body(self, *args, **kwargs)
        except Exception as e:  # noqa: BLE001 - raised again, typed where an argument explains it
            raise explained_call(e, body, (self, *args), kwargs, type(self).__name__)  # noqa: B904 - it decides

    return update_wrapper(wrapper, body)


def guard_names(scope: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the public functions of a module; what it calls inside stays bare."""
    made: dict[FunctionType, Any] = {}  # two names of one function stay one
    for name in names:
        value = scope[name]
        if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
            if value not in made:
                made[value] = guarded(value, module=scope["__name__"])
            scope[name] = made[value]
