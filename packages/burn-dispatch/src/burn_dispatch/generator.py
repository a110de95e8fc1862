"""The generator: one Python function per operation and context, made at its first call.

Promotion checks, shape rule, tape and record-or-execute are inlined into one body from the
fragments of the layers; nothing is decided per call that can be decided once. The source stands
in `linecache`, so tracebacks and debuggers show it.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn_backend import TENSOR_CLASS, Again, Fragments, argument_names
from burn_dispatch import slow
from burn_ir import Entry
from burn_std import BurnError

if TYPE_CHECKING:
    from burn_dispatch.context import Context

_serial = itertools.count()


def generate(context: Context, entry: Entry) -> Callable[..., Any]:
    """Return the function of `entry` for tensors of `context`."""
    fragments = context.fragments(entry)
    # On an autodiff context a tensor of the same resource's plain context is a constant.
    other = "{}.b is not CTX"
    if context.base.is_autodiff:
        other += " and {}.b is not PLAIN_CTX"
    again = slow.slow_path(context, entry)
    constants: dict[str, Any] = {
        "CTX": context.base,
        "PLAIN_CTX": context.resource.plain_context() if context.base.is_autodiff else None,
        "TENSOR": TENSOR_CLASS.cls,
        "AGAIN": Again,
        "BURN_ERROR": BurnError,
        "SLOW": again,
        "FAILED": slow.failure_path(context, entry, again),
        "SCALAR": context.numbers,
        "FLOAT": float,
        "INT": int,
        "NONE_DTYPE": None,
        **fragments.constants,
    }
    source = "\n".join(_frame(entry, fragments, other))
    filename = f"<burn {context.name}.{entry.name} #{next(_serial)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), constants)
    function: Callable[..., Any] = constants[_safe(entry.name)]
    return function


def source_of(function: Callable[..., Any]) -> str:
    """Return the generated source of a function, for readers and tests."""
    objects = getattr(function, "__self__", None)
    if objects.__class__ is tuple:  # a native one, which has the Python function first
        function = objects[0]
    return "".join(linecache.getlines(function.__code__.co_filename))


def _safe(name: str) -> str:
    name = name.replace("::", "__")
    return name + "_" if name in ("any", "all", "abs", "sum", "round", "pow", "sorted") else name


def _frame(entry: Entry, f: Fragments, other: str) -> list[str]:
    names = argument_names(entry)
    args = ", ".join(names)
    again = f"return SLOW({args})"
    # Locals end in an underscore: inputs and attributes may have any name that does not.
    body: list[str] = []
    first = True
    reference = _reference(entry)
    for i in entry.inputs:
        body += _load(i.name, i, f, again, first, reference, other)
        first = False
    promotion = _promotion(entry, again)
    used = any("d_" in line for line in [*f.produce, *f.finish])
    if used or len(promotion) > 1:
        body += promotion
    body += ["try:"] + [f"    {line}" for line in f.produce]
    body += [f"except AGAIN: {again}", f"except Exception as e: return FAILED(e, {args})"]
    if entry.multi:
        body += [
            "ts_ = []",
            "for v_ in r_:",
            "    t_ = TENSOR(); t_.b = CTX; t_.v = v_; t_.node = None; ts_.append(t_)",
            *f.finish,
            "return ts_",
        ]
    else:
        body += ["t_ = TENSOR(); t_.b = CTX; t_.v = r_"]
        body += f.finish or ["t_.node = None"]
        body += ["return t_"]
    # What mends arguments may raise from far below, but the user's line is what matters.
    return [
        f"def {_safe(entry.name)}({args}):",
        "    try:",
        *(f"        {line}" for line in body),
        "    except BURN_ERROR as e: raise e.with_traceback(None) from e.__cause__",
    ]


def _reference(entry: Entry) -> str | None:
    """Return the input whose dtype a scalar in the second place takes (binary maps)."""
    if len(entry.inputs) == 2 and all(i.scalar and not i.optional for i in entry.inputs):
        return entry.inputs[0].name
    return None


def _load(
    name: str, i: Any, f: Fragments, again: str, first: bool, reference: str | None, other: str
) -> list[str]:
    more = f.load.get(name, [])
    absent = f.else_load.get(name, [])
    v = f"{name}_v"
    if i.many:
        return [
            # A tensor can be iterated over, which is not what a list of tensors means.
            f"if {name}.__class__ is TENSOR: {again}",
            "try:",
            f"    {v} = []",
            f"    for e_ in {name}:",
            f"        if {other.replace('{}', 'e_')}: {again}",
            f"        {v}.append(e_.v)",
            *(f"    {m}" for m in more),
            f"except (AttributeError, TypeError): {again}",
        ]
    take = [f"{v} = {name}.v", *more]
    if i.optional:
        out = [f"if {name} is None:", f"    {v} = None", *(f"    {a}" for a in absent), "else:"]
        out += [
            "    try:",
            f"        if {other.replace('{}', name)}: {again}",
            *(f"        {t}" for t in take),
        ]
        return [*out, f"    except AttributeError: {again}"]
    out = ["try:", f"    if {other.replace('{}', name)}: {again}", *(f"    {t}" for t in take)]
    if reference and not first:
        number = [f"    {v} = SCALAR({reference}_v.dtype, {name})", f"    if {v} is None: {again}"]
        number += [f"    {a}" for a in absent]
        # Native code leaves to Python where an attribute is missing, so numbers come before that.
        return [
            f"if {name}.__class__ is FLOAT or {name}.__class__ is INT:", *number, "else:",
            *(f"    {line}" for line in [*out, "except AttributeError:", *number]),
        ]  # fmt: skip
    return [*out, f"except AttributeError: {again}"]


def _promotion(entry: Entry, again: str) -> list[str]:
    promoted = [i for i in entry.inputs if i.promoted]
    if not entry.inputs:
        return ["d_ = NONE_DTYPE"]
    lead = (promoted or entry.inputs)[0]
    if lead.many:
        out = [f"if not {lead.name}_v: {again}", f"d_ = {lead.name}_v[0].dtype"]
    else:
        out = [f"d_ = {lead.name}_v.dtype"]
    for i in promoted:
        v = f"{i.name}_v"
        if i.many:
            out += [f"for e_ in {v}:", f"    if e_.dtype is not d_: {again}"]
        elif i is lead:
            continue
        elif i.optional:
            out.append(f"if {v} is not None and {v}.dtype is not d_: {again}")
        else:
            out.append(f"if {v}.dtype is not d_: {again}")
    return out
