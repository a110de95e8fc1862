"""A replay as one function: checks its inputs, finds memory for results, makes the launches.

The function is written out for each replay, so that a run of a few small launches is a few
attribute reads and one call. It gives back None where it does not serve (another layout, number or
extent, a run of another thread, somebody who measures), and has done nothing then.

Where results may take the memory of inputs, it counts at every run who holds those: their value
(which the caller of the run knows of), the tensor, the array and the block of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from burn_cube import DeviceArray
from burn_cube.spi import profiles
from burn_cube_backend.late import NEVER_LATE, Place
from burn_cube_backend.packs import seen
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import OF_A_LOCAL

if TYPE_CHECKING:
    from burn_cube_backend.engine import Engine
    from burn_cube_backend.replay import Replay

Quick = Callable[..., tuple[Any, ...] | None]
# Memory between launches up to this size belongs to the replay, more is shared by all of a thread.
OWN_SCRATCH = 4096


class Results:
    """Results of one output, given out again when nobody holds them or their memory."""

    def __init__(
        self, engine: Engine, size: int, array: tuple[Any, ...], bare: CubeTensor, most: int
    ) -> None:  # fmt: skip
        self.engine = engine
        self.size = size
        self.array = array
        self.bare = bare
        self.most = most
        self.kept: list[CubeTensor] = []

    def new(self) -> CubeTensor:
        """Return one that nobody had before."""
        memory = self.engine.memory(self.size)
        made = self.bare.on(DeviceArray(memory.client, memory.storage, *self.array))
        if len(self.kept) < self.most:
            self.kept.append(made)
        return made


def quick(
    replay: Replay, layouts: Sequence[Any], extents: Sequence[tuple[Place, Any]],
    exact: Callable[[Any], Any], overwritten: Callable[..., Exception],
) -> Quick:  # fmt: skip
    """Return the function of a replay: of inputs, run-time values, and what says who is free.

    Args:
        replay: what is run.
        layouts: of the inputs, as the engine numbers them.
        extents: run-time values that are no numbers, by place.
        exact: what is equal only for equal numbers.
        overwritten: returns the error of a run that failed after it wrote over some inputs.
    """
    engine = replay.engine
    constants: dict[str, Any] = {
        "PROFILES": profiles(), "CLIENT": engine.client, "LAYOUT": engine.layout_of,
        "COUNT": getrefcount, "EXACT": exact, "TAKE": replay.turn.pop,
        "GIVE": replay.turn.append, "MADE": replay.made, "MEMORY": replay.memory,
        "OVERWRITTEN": overwritten,
    }  # fmt: skip
    lines = ["if PROFILES or CLIENT.log is not None: return None"]
    if layouts:
        lines.append(f"{', '.join(f'e{k}' for k in range(len(layouts)))}, = E")
    for k, layout in enumerate(layouts):
        constants[f"L{k}"] = layout
        wanted = layout if layout.__class__ is int else f"L{k}"  # of a number, a key
        lines.append(f"if (e{k}.layout or LAYOUT(e{k})) != {wanted}: return None")
    for k, places in replay.scales.items():
        lines += [f"e{n} = e{k}.{part}" for n, part in zip(places, ("scale", "zero"), strict=False)]
        lines.append(f"e{k} = e{k}.values")
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
        # Mostly it is the very object of the run before, as a constant of a rule is.
        constants[f"V{n}"] = replay.objects[slot, k]
        lines += [f"n_ = R[{slot}][{k}]", f"if n_ is not V{n} and ({found} != N{n}): return None"]
    constants |= {"F": float, "REPLAY": replay, "OTHERS": (float, *NEVER_LATE)}
    if replay.is_twin:
        lines += _found_forms(replay, constants)
    elif replay.packings:  # as they were in a run before: their forms may be kept
        constants["SEEN"] = seen
        keys: dict[int, dict[Any, None]] = {}
        for p in replay.packings:
            keys.setdefault(p.owner, {})[p.key] = None
        for n, (k, own) in enumerate(keys.items()):
            constants[f"PACKS{n}"] = (*own,)
            lines.append(f"p{n} = SEEN(e{k}, PACKS{n})")
        lines.append(f"if {' and '.join(f'p{n}' for n in range(len(keys)))}: return None")
    for slot, k in replay.lates:  # code may have asked for the class of a late number
        asks = "in OTHERS" if (slot, k) in replay.ints else "is not F"
        lines.append(f"if R[{slot}][{k}].__class__ {asks}: return None")
    # One thread at a time. Taking the one element of a list is atomic and sooner than a lock.
    lines += ["try: TAKE()", "except IndexError: return None", "try:"]
    lines += [f"    {line}" for line in _run(replay, constants)]
    lines += ["finally: GIVE(None)"]
    constants["QUANT"] = QuantTensor
    count = len(replay.outs) - sum(len(at) for at, *_ in replay.quantized.values())
    results = [f"o{k}" for k in range(count)]
    for k, (places, dtype, shape) in replay.quantized.items():
        constants |= {f"Q{k}": dtype, f"S{k}": shape}
        scale, zero = [*(f"o{n}" for n in places), "None"][:2]
        results[k] = f"QUANT(o{k}, {scale}, {zero}, Q{k}, S{k})"
    lines.append(f"return ({''.join(f'{r}, ' for r in results)})")
    text = "\n".join(["def quick(E, R, FREE=None):", *(f"    {line}" for line in lines)])
    exec(compile(text, "<burn replay>", "exec"), constants)
    # Not among its own names: what refers to itself would wait for the collector, with its memory.
    return constants.pop("quick")  # type: ignore[no-any-return]


def _found_forms(replay: Replay, constants: dict[str, Any]) -> list[str]:
    """Return the lines that find packed forms of the inputs."""
    lines: list[str] = []
    for n, p in enumerate(replay.packings):
        constants[f"FORM{n}"] = p.key
        lines += [
            f"q_ = e{p.owner}.packed",
            "if q_ is None: return None",
            f"q{n} = q_.forms.get(FORM{n})",
            f"if q{n} is None: return None",
        ]
    return lines


def _run(replay: Replay, constants: dict[str, Any]) -> list[str]:
    """Return the lines behind the checks, which one thread runs at a time."""
    lines: list[str] = []
    places = {k: f"e{k}.buf" for k in replay.used}
    bases = [f"{place}.pointer" for place in places.values()]
    arrays = [*places.values()]
    whole = {} if replay.builtin is None else replay.whole()
    if replay.over:
        constants |= {"DONORS": (*replay.over.values(),), "NONE": (False,) * len(replay.over)}
        lines.append("u_ = NONE if FREE is None else FREE(DONORS)")
    made: dict[int, str] = {}
    for k, (size, kept) in enumerate(replay.own):
        if k in replay.over:
            lines += _taken_over(replay, k, size)
            bases.append(f"m{k}.pointer")
        elif k in whole:
            out, results = whole[k]
            constants[f"NEW{k}"] = results.new
            if kept is None:
                lines.append(f"o{out} = NEW{k}()")
            else:
                constants[f"KEPT{k}"] = results.kept
                # references: the list and the loop; what it is part of, and the argument
                lines += [
                    f"for o{out} in KEPT{k}:",
                    f"    if COUNT(o{out}) == {1 + OF_A_LOCAL} and COUNT(o{out}.buf) == 2"
                    f" and COUNT(o{out}.buf.storage) == 2:",
                    f"        o{out}.packed = None",
                    "        break",
                    f"else: o{out} = NEW{k}()",
                ]
            made[out] = ""
            bases.append(f"o{out}.buf.storage.address")
        else:
            lines.append(f"m{k} = MEMORY({k})")
            bases.append(f"m{k}.pointer")
        arrays.append(f"m{k}")
    if replay.is_twin:
        forms = [f"q{n}[{k}]" for n, p in enumerate(replay.packings) for k in range(len(p.blocks))]
        bases += [f"{form}.pointer" for form in forms]
        arrays += forms
    if replay.builtin is not None and 0 < replay.scratch <= OWN_SCRATCH:
        replay.held = replay.engine.memory(replay.scratch)
        bases.append(str(replay.held.pointer))
    elif replay.scratch:
        constants["ENGINE"] = replay.engine  # held: another thread may clean up during the call
        lines.append(f"s_ = ENGINE.scratch({replay.scratch})")
        bases.append("s_.pointer")
        arrays.append("s_")
    elif replay.builtin is not None:
        bases.append("0")
    if replay.log.watches:
        constants["RECORD"] = replay.engine.record
        lines.append("RECORD()")
    lines += [*_called(replay, constants, bases, arrays), "REPLAY.runs += 1"]
    for k, described in enumerate(replay.outs):
        if k in made:
            continue
        kind, block = described[:2]
        number = replay.number_of[block] if kind == "block" else -1
        constants[f"O{k}"] = described
        given = f"e{block}.buf" if kind == "input" else "None"
        again = f"MADE(O{k}, {given}, {f'm{number}' if number >= 0 else 'None'}, R)"
        if replay.alike[k]:  # nobody else has the tensor
            again = f"e{replay.over[number]} if t{number} else {again}"
        lines.append(f"o{k} = {again}")
    return lines


def _taken_over(replay: Replay, k: int, size: int) -> list[str]:
    """Return the lines that find memory for a result: that of an input, if only the run has it."""
    donor, at = replay.over[k], [*replay.over].index(k)
    e, m = f"e{donor}", f"m{k}"
    # references: value, inputs and `e`; tensor and `m`; array and argument
    return [
        f"{m} = {e}.buf",
        f"t{k} = (u_[{at}] and COUNT({e}) == {2 + OF_A_LOCAL} and COUNT({m}) == {1 + OF_A_LOCAL}"
        f" and COUNT({m}.storage) == 2 and {m}.storage.bytes == {size} and not {m}.offset)",
        f"if not t{k}: {m} = MEMORY({k})",
        # New elements under the same payload.
        f"else: {e}.packed = None",
    ]


def _called(
    replay: Replay, constants: dict[str, Any], bases: Sequence[str], arrays: Sequence[str]
) -> list[str]:
    """Return the lines that make the launches."""
    if replay.builtin is not None:
        constants |= {"CALL": replay.builtin, "WORDS": replay.calls.words}
        constants["FAULTED"] = replay.calls.faulted
        lines = []
        for n, (at, word, converted, read) in enumerate(replay.numbers):
            constants |= {f"P{n}": word.pack_into, f"C{n}": converted, f"R{n}": read}
            lines.append(f"P{n}(WORDS, {at}, C{n}(R{n}(R)))")
        call = [
            f"done = CALL({', '.join(bases)})",
            f"if done != {len(replay.log.calls)}: FAULTED(done)",
        ]
        if replay.calls.note is not None:
            constants["NOTE"] = replay.calls.note
            call.append("NOTE()")
    else:
        constants |= {"WRITE": replay.write, "CALLS": replay.calls}
        lines = [f"WRITE(({''.join(f'{a}, ' for a in arrays)}), R)"]
        call = ["CALLS.run()"]
    if replay.guard is not None:
        constants["GUARD"] = replay.guard
        call = ["with GUARD:", *(f"    {line}" for line in call)]
    if replay.over:
        taken = "".join(f"t{k}, " for k in replay.over)
        call = [
            "try:", *(f"    {line}" for line in call),
            "except Exception as c_:",
            f"    x_ = OVERWRITTEN(c_, tuple([d for d, t in zip(DONORS, ({taken})) if t]))",
            "    if x_ is c_: raise",
            "    raise x_ from c_",
        ]  # fmt: skip
    return [*lines, *call]
