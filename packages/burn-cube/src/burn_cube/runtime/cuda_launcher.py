"""The native call that launches whichever of a few CUDA graphs has the words of a run.

A steady run of a list of launches is one such call: it writes the addresses of the run into the
words, compares them with those of each graph, and hands the equal one to the driver.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from burn_cube.runtime.cache import digest_of, kernel_cache
from burn_cube.runtime.native_builtins import Builtin
from burn_cube.runtime.native_calls import block, builtin_text

# `table` has a row (graph, its words) for each graph, zeros behind the last. `facts` are: the words
# of this run, their number, rows of the table, the stream.
TEXT = """
define i64 @burn_calls_run(ptr %table, i64 %count, ptr %facts, ptr %launch) {
entry:
  %words = load ptr, ptr %facts
  %sizep = getelementptr i64, ptr %facts, i64 1
  %size = load i64, ptr %sizep
  %rowsp = getelementptr i64, ptr %facts, i64 2
  %rows = load i64, ptr %rowsp
  %streamp = getelementptr i64, ptr %facts, i64 3
  %stream = load ptr, ptr %streamp
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %other]
  %more = icmp slt i64 %i, %rows
  br i1 %more, label %row, label %none
row:
  %at = mul i64 %i, 2
  %graphp = getelementptr i64, ptr %table, i64 %at
  %graph = load ptr, ptr %graphp
  %hasp = getelementptr i64, ptr %graphp, i64 1
  %has = load ptr, ptr %hasp
  %there = icmp ne ptr %graph, null
  br i1 %there, label %word, label %none
word:
  %k = phi i64 [0, %row], [%k1, %same]
  %left = icmp slt i64 %k, %size
  br i1 %left, label %look, label %found
look:
  %ap = getelementptr i64, ptr %words, i64 %k
  %bp = getelementptr i64, ptr %has, i64 %k
  %a = load i64, ptr %ap
  %b = load i64, ptr %bp
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %same, label %other
same:
  %k1 = add i64 %k, 1
  br label %word
other:
  %next = add i64 %i, 1
  br label %head
found:
  %status = call i32 %launch(ptr %graph, ptr %stream)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %done, label %none
done:
  ret i64 %count
none:
  ret i64 0
}
"""


@cache
def graph_launcher() -> Builtin | None:
    """Return the builtin, None where no compiler for the host is installed."""
    if find_spec("llvmlite") is None:
        return None
    from burn_cube.runtime.llvm_jit import jit  # needs llvmlite

    text, found = TEXT + builtin_text(), jit()
    key, images = digest_of("graphs", text, found.machine), kernel_cache()
    image = images.get(key)
    if image is None:
        image = found.compile(text)
        images.put(key, image)
    _, builtin = found.link(image, "burn_calls_run", "burn_calls_builtin")
    return Builtin("launches", builtin)


def facts_of(words: Any, rows: int, stream: int) -> Any:
    """Return the facts of a list of launches; they live as long as whoever calls."""
    return np.array([words.ctypes.data, len(words), rows, stream], np.int64)


def self_of(table: Any, count: int, facts: Any, launch: int, words: Any, patches: Any) -> bytes:
    """Return what the builtin finds in its `self`.

    Args:
        table: a row for each graph.
        count: launches of the list.
        facts: see `facts_of`.
        launch: address of the driver's function.
        words: of this run.
        patches: where addresses stand, see `native_calls.block`.
    """
    return block((table.ctypes.data, count, facts.ctypes.data, launch), words, patches)
