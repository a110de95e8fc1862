"""The indices of a kernel: clamped into their dim, and noted where they were outside."""

from __future__ import annotations

from burn_cube_backend.code import Code, Val
from burn_std import dtypes as d


class Watch:
    """The fault record of a kernel that takes indices."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.record = code.buffer("record", d.int32)

    def inside(self, raw: Val, size: Val, site: Val, negative: bool) -> tuple[Val, Val]:
        """Return the place of an index and whether it is inside; the place is clamped."""
        at, good = self.checked(raw, size, negative)
        with self.code.when(~good):
            self.note(raw, site)
        place = at.call("min", size.cast(d.int64) - 1).call("max", 0)
        return place.cast(self.code.index), good

    def checked(self, raw: Val, size: Val, negative: bool) -> tuple[Val, Val]:
        """Return the place of an index as it is, and whether it is inside; note nothing."""
        at, size = raw.cast(d.int64), size.cast(d.int64)
        if negative:
            at = (at < 0).pick(at + size, at)
        # What is below 0 is huge as a number without a sign.
        return at, at.bits(d.uint64) < size.bits(d.uint64)

    def note(self, raw: Val, site: Val) -> None:
        """Keep an index that is outside, unless there is one."""
        code, b = self.code, self.code.b
        zero = code.const(0, d.int32)
        with code.when(site > 0):
            old = Val(code, b.atomic_cas(self.record.op, code.at(0).op, zero.op, site.op))
            with code.when(old.eq(0)):
                far = raw.cast(d.int64).call("min", 2**31 - 1).call("max", -(2**31))
                self.record[code.at(1)] = far.cast(d.int32)
