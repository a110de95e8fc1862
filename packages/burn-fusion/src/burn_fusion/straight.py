"""Straight paths of the recorder as functions of their own, which a backend may compile.

They use little of the language (see `Backend.compiled`), and leave what is rare to the recorder's
methods before they have changed anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from burn_fusion.segment import Poison, Value

if TYPE_CHECKING:
    from burn_fusion.recorder import Recorder


def taking(recorder: Recorder) -> Callable[[Value], int]:
    """Return what takes a value from outside into the open segment; see `Recorder.take`."""
    tls, sizes, slow = recorder.tls, recorder.sizes, recorder.take

    def take(value: Value) -> int:
        if value.seg is not None or value.buf.__class__ is Poison or recorder.lost is not None:
            return slow(value)
        seg = tls.h.seg
        bits = seg.bits + sizes[value.shape] * value.dtype.bits
        if bits > seg.limit:
            return slow(value)
        seg.bits = bits
        ext = seg.ext
        ext.append(value)
        slot = -len(ext)
        seg.slots[value] = slot
        return slot

    return take
