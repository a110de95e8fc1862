"""Batch norm with the elementwise operations behind it in its last kernel, where it is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import Group, Part
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import FusedMap
from burn_cube_backend.geometry import broadcast_shape, is_last
from burn_cube_backend.kernels.batch_norm import batch_norm, operands
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

# Operands of the last kernel, and what it does with each but the first.
_STEPS = {"m": "sub", "r": "mul", "w": "mul", "b": "add"}


class FusedNorm:
    """The kernels of batch norms with tails on one device."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.made: dict[Any, FusedMap] = {}

    def __call__(
        self, tail: tuple[Group, Sequence[CubeTensor], Sequence[Any]], x: CubeTensor, *args: Any
    ) -> tuple[CubeTensor, ...]:
        """Return the results of a tail, mean and variance.

        Args:
            tail: the group, its outside tensors and its numbers.
            x: images.
            args: the other arguments of `batch_norm`.
        """
        engine = self.engine
        group, others, numbers = tail
        weight, bias, mean, var, training, eps = args
        alike = broadcast_shape([x.shape, *[t.shape for t in others]]) == x.shape
        # Results lie as those of single operations do where all lie alike.
        mixed = engine.keeps_last and any(
            t.shape == x.shape and is_last(t.shape, t.strides) != is_last(x.shape, x.strides)
            for t in others
        )
        if not x.size or not alike or mixed:
            out, mean, var = batch_norm(engine, x, *args)
            return (*self._behind(group, out, [*others, *numbers]), mean, var)
        given, mean, var = operands(engine, x, weight, bias, mean, var, training, eps)
        kernel = self._whole(group, tuple(given), tuple(t.dtype for t in given.values()))
        return (*kernel(*given.values(), *others, *numbers), mean, var)

    def _behind(
        self, group: Group, out: CubeTensor, args: Sequence[Any]
    ) -> list[CubeTensor]:  # fmt: skip
        """Return the results of a tail that is computed by itself; `GIVEN` may be one of them."""
        others = tuple(p for p in group.outputs if p)
        made = iter(self._tail(group._replace(outputs=others))(out, *args) if others else ())
        # It has its own shape, which need not be that of what is computed from it.
        return [next(made) if p else out for p in group.outputs]

    def _tail(self, group: Group) -> FusedMap:
        """Return the kernels of a tail alone; `GIVEN` is its first outside tensor."""
        found = self.made.get(group)
        if found is None:
            dtype = group.parts[0].dtype
            parts = [Part("cast", (-1,), (dtype,), 0, dtype, dtype), *_moved(group, 0, 1)]
            made = Group(tuple(parts), (dtype, *group.outside), group.outputs)
            found = self.made[group] = FusedMap(self.engine, made)
        return found

    def _whole(self, group: Group, names: tuple[str, ...], dtypes: tuple[DType, ...]) -> FusedMap:
        """Return the last kernel of a batch norm with a tail."""
        key = (group, names, dtypes)
        found = self.made.get(key)
        if found is not None:
            return found
        kind = wide(dtypes[0])
        parts: list[Part] = []

        def add(name: str, inputs: tuple[int, ...], static: tuple[Any, ...], out: DType) -> int:
            lead = kind if name != "cast" else out
            parts.append(Part(name, inputs, static, 0, lead, out))
            return len(parts) - 1

        refs = [
            -1 - k if t is kind else add("cast", (-1 - k,), (kind,), kind)
            for k, t in enumerate(dtypes)
        ]
        made = refs[0]
        for name, ref in zip(names[1:], refs[1:], strict=True):
            made = add(_STEPS[name], (made, ref), (), kind)
        made = add("cast", (made,), (dtypes[0],), dtypes[0])
        parts += _moved(group, made, len(dtypes))
        outputs = tuple(p + made for p in group.outputs)
        whole = Group(tuple(parts), (*dtypes, *group.outside), outputs)
        found = self.made[key] = FusedMap(self.engine, whole)
        return found


def _moved(group: Group, given: int, outside: int) -> list[Part]:
    """Return the parts of a tail but `GIVEN`, behind other parts.

    Args:
        group: the tail.
        given: the part that stands for `GIVEN`; the next ones follow it.
        outside: how many outside tensors come before those of the tail.
    """

    def moved(ref: int | None) -> int | None:
        if ref is None:
            return None
        return ref + given if ref >= 0 else ref - outside

    return [p._replace(inputs=tuple(map(moved, p.inputs))) for p in group.parts[1:]]
