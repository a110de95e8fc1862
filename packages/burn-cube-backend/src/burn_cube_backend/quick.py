"""A replay as one function: checks its inputs, finds memory for results, makes the launches.

The function is written out for each replay, so that a run of a few small launches is a few
attribute reads and one call. It gives back None where it does not serve (another layout, number or
extent, a run of another thread, somebody who measures), and has done nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from burn_cube import DeviceArray
from burn_cube.spi import profiles
from burn_cube_backend.late import Place, Run
from burn_cube_backend.payload import CubeTensor

if TYPE_CHECKING:
    from burn_cube_backend.replay import Replay

Quick = Callable[[Sequence[Any], Run], tuple[Any, ...] | None]
# Memory of results is taken over from results that nobody holds any more, up to this size.
KEPT = 16 << 20
# So many results of one output are kept for that.
MOST = 3
# Memory between launches up to this size belongs to the replay, more is shared by all of a thread.
OWN_SCRATCH = 4096


class Results:
    """Results of one output, given out again when nobody holds them or their memory."""

    def __init__(self, replay: Replay, size: int, array: tuple[Any, ...], bare: CubeTensor) -> None:
        self.engine = replay.engine
        self.size = size
        self.array = array
        self.bare = bare
        self.kept: list[CubeTensor] = []

    def new(self) -> CubeTensor:
        """Return one that nobody had before."""
        memory = self.engine.memory(self.size)
        made = self.bare.on(DeviceArray(memory.client, memory.storage, *self.array))
        if self.size <= KEPT and len(self.kept) < MOST:
            self.kept.append(made)
        return made


def quick(
    replay: Replay, layouts: Sequence[Any], extents: Sequence[tuple[Place, Any]],
    exact: Callable[[Any], Any],
) -> Quick:  # fmt: skip
    """Return the function of a replay.

    Args:
        replay: what is run.
        layouts: of the inputs, as the engine numbers them.
        extents: run-time values that are no numbers, by place.
        exact: what is equal only for equal numbers.
    """
    engine, log = replay.engine, replay.log
    constants: dict[str, Any] = {
        "PROFILES": profiles(), "CLIENT": engine.client, "LAYOUT": engine.layout_of,
        "COUNT": getrefcount, "EXACT": exact, "ACQUIRE": replay.lock.acquire,
        "RELEASE": replay.lock.release, "MADE": replay.made, "MEMORY": replay.memory,
    }  # fmt: skip
    lines = ["if PROFILES or CLIENT.log is not None: return None"]
    if layouts:
        lines.append(f"{', '.join(f'e{k}' for k in range(len(layouts)))}, = E")
    for k, layout in enumerate(layouts):
        constants[f"L{k}"] = layout
        wanted = layout if layout.__class__ is int else f"L{k}"  # of a number, a key
        lines.append(f"if (e{k}.layout or LAYOUT(e{k})) != {wanted}: return None")
    for a, b, distance in replay.aliases:
        lines += [
            f"if e{a}.buf.storage is not e{b}.buf.storage: return None",
            f"if e{b}.buf.pointer - e{a}.buf.pointer != {distance}: return None",
        ]
    for n, ((slot, k), value) in enumerate(extents):
        constants[f"X{n}"] = value
        lines.append(f"if R[{slot}][{k}] != X{n}: return None")
    for n, ((slot, k), value) in enumerate(replay.baked.items()):
        constants[f"N{n}"] = value
        is_float = value.__class__ is float  # and neither zero nor NaN, see `exact`
        found = "n_.__class__ is not F or n_" if is_float else "EXACT(n_)"
        lines += [f"n_ = R[{slot}][{k}]", f"if {found} != N{n}: return None"]
    constants |= {"F": float, "REPLAY": replay}
    for slot, k in replay.lates:  # code may have asked for the class of a late number
        asks = "is" if (slot, k) in replay.ints else "is not"
        lines.append(f"if R[{slot}][{k}].__class__ {asks} F: return None")
    lines += ["if not ACQUIRE(False): return None", "try:"]
    lines += [f"    {line}" for line in _run(replay, constants)]
    lines += ["finally: RELEASE()"]
    if replay.builtin is not None:
        constants["FAULTED"] = replay.calls.faulted
        lines.append(f"if done != {len(log.calls)}: FAULTED(done)")
    lines.append(f"return ({''.join(f'o{k}, ' for k in range(len(replay.outs)))})")
    text = "\n".join(["def quick(E, R):", *(f"    {line}" for line in lines)])
    exec(compile(text, "<burn replay>", "exec"), constants)
    return constants["quick"]  # type: ignore[no-any-return]


def _run(replay: Replay, constants: dict[str, Any]) -> list[str]:
    """Return the lines behind the checks, the lock held."""
    lines: list[str] = []
    bases = [f"e{k}.buf.pointer" for k in replay.used]
    whole = replay.whole()
    for k in range(len(replay.own)):
        if k in whole:
            out, results = whole[k]
            constants[f"KEPT{k}"], constants[f"NEW{k}"] = results.kept, results.new
            # references: the list, the loop, the argument of getrefcount; what it is part of
            lines += [
                f"for o{out} in KEPT{k}:",
                f"    if COUNT(o{out}) == 3 and COUNT(o{out}.buf) == 2"
                f" and COUNT(o{out}.buf.storage) == 2: break",
                f"else: o{out} = NEW{k}()",
            ]
            bases.append(f"o{out}.buf.storage.address")
        else:
            lines.append(f"m{k} = MEMORY({k})")
            bases.append(f"m{k}.pointer")
    if 0 < replay.scratch <= OWN_SCRATCH:
        replay.held = replay.engine.memory(replay.scratch)
        bases.append(str(replay.held.pointer))
    else:
        if replay.scratch:  # held: another thread may clean up during the call
            constants["SCRATCH"] = replay.engine.scratch
            lines.append(f"s_ = SCRATCH({replay.scratch})")
        bases.append("s_.pointer" if replay.scratch else "0")
    given = f"{', '.join(bases)}"
    if replay.log.watches:
        constants["RECORD"] = replay.engine.record
        lines.append("RECORD()")
    if replay.builtin is not None:
        constants |= {"CALL": replay.builtin, "WORDS": replay.calls.words}
        for n, (at, word, converted, read) in enumerate(replay.numbers):
            constants |= {f"P{n}": word.pack_into, f"C{n}": converted, f"R{n}": read}
            lines.append(f"P{n}(WORDS, {at}, C{n}(R{n}(R)))")
        call = [f"done = CALL({given})"]
    else:
        constants |= {"WRITE": replay.write, "CALL": replay.calls.run}
        call = [f"WRITE(({given},), R)", "CALL()"]
    if replay.log.guards:
        (constants["GUARD"],) = replay.log.guards
        call = ["with GUARD:", *(f"    {line}" for line in call)]
    lines += [*call, "REPLAY.runs += 1"]
    taken = {out for out, _ in whole.values()}
    for k, described in enumerate(replay.outs):
        if k not in taken:
            kind, block = described[:2]
            memory = f"m{replay.number_of[block]}" if kind == "block" else "None"
            constants[f"O{k}"] = described
            lines.append(f"o{k} = MADE(O{k}, E, {memory}, R)")
    return lines
