"""The replay of a captured step: what stands between a call and the plans, and after them.

The function is written out for the step, since a step may take no longer than a few attribute reads
do. Where it does not serve (other arguments, a module with other parts, another rate that was taken
for constant) it returns `NOT_SERVED` and has done nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_core.parameter import Parameter
from burn_dispatch import current_scope
from burn_std import CaptureError
from burn_tensor import Tensor

if TYPE_CHECKING:
    from burn_core.capturing import Places

# Where an input of a plan comes from: `argument`, `state`, `constant` and a number, or `made` and
# the run and position that made it.
Source = tuple[Any, ...]
NOT_SERVED = object()
# C-level setter of the payload slot: a loop over it is one call that no signal can split.
_set_payload: Any = Tensor.v.__set__  # type: ignore[misc]
_payload = attrgetter("v")


class Replay(NamedTuple):
    """A step that is replayed.

    Attributes:
        runs: plans; `froms` is where the inputs of each come from.
        changing: run, slot and position of the numbers that change, and what they follow.
        results: where the leaves of what the step returns come from; `out` with its other leaves.
        after: where the new values of the state come from.
        constants: payloads.
        rates: rates of the state that no number of the step follows, as they were.
        tied: other ones that were as one that is followed, and have to be still.
        moves: steps that each schedule makes, and whatever else counts them.
        draws: random numbers of the step are counted on by this.
        arguments: tensors among the arguments.
        rematerialise: compute cheap values again where that makes the peak of memory smaller.
    """

    runs: Sequence[Any]
    froms: list[list[Source]]
    changing: list[tuple[int, int, int, Source]]
    out: Any
    results: list[Source | None]
    after: list[Source]
    constants: list[Any]
    rates: dict[int, float]
    tied: dict[int, int]
    moves: list[int]
    draws: int
    arguments: int
    rematerialise: bool


def filled(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a tree of lists, tuples and dicts with other leaves, taken in order."""
    if isinstance(tree, dict):
        return {key: filled(part, leaf) for key, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[filled(part, leaf) for part in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)(filled(part, leaf) for part in tree)
    return leaf(tree)


class Writer:
    """Writes the functions of one replay.

    Attributes:
        run: takes the tensors among the arguments.
        whole: the plans as one function, of the backend.
    """

    def __init__(self, replay: Replay, places: Places, resource: Any, lock: Any) -> None:
        self.replay = replay
        self.places = places
        self.resource = resource
        self._stands = resource.backend.standing_for
        self._wanted: list[Source] = []
        self.whole: Any = None
        self.scope: dict[str, Any] = {
            "NOT_SERVED": NOT_SERVED, "TENSOR": Tensor,
            "RESOURCE": resource, "MOVED": partial(moved_away, resource), "PLACES": places,
            "PLAIN": resource.plain_context().base, "LOCK": lock,
        }  # fmt: skip
        self._changes = [k for k, s in enumerate(replay.after) if s != ("state", k)]
        self._body = self._lines()
        if self._changes:
            # Threads take turns, but where nothing is changed.
            self._body = ["with LOCK:", *(f"    {line}" for line in self._body)]
        names = [f"a{k}" for k in range(replay.arguments)]
        takes = [f"{', '.join(names)}, = args"] if names else []
        takes += [f"v{k} = a{k}.v" for k in range(replay.arguments)]
        self.run: Callable[[Sequence[Tensor]], Any] = self._made(takes, {})

    def quick(self, tensors: Sequence[Tensor], scope: Any) -> Callable[[Sequence[Any]], Any]:
        """Return the function that also checks that arguments are like some, in a scope."""
        names: dict[str, Any] = {"NOW": current_scope, "SCOPE": scope}
        lines = [f"if len(args) != {len(tensors)} or NOW() is not SCOPE: return NOT_SERVED"]
        if tensors:
            lines.append(f"{', '.join(f'a{k}' for k in range(len(tensors)))}, = args")
        for k, x in enumerate(tensors):
            names |= {f"C{k}": x.b, f"S{k}": x.v.shape, f"D{k}": x.v.dtype}
            lines += [
                f"if a{k}.__class__ is not TENSOR or a{k}.b is not C{k}: return NOT_SERVED",
                f"if a{k}.node {_tracks(x)} None: return NOT_SERVED",
                f"v{k} = a{k}.v",
                f"if v{k}.dtype is not D{k} or v{k}.shape != S{k}: return NOT_SERVED",
            ]
        return self._made(lines, names)

    def _made(self, lines: list[str], names: dict[str, Any]) -> Callable[[Sequence[Any]], Any]:
        scope = self.scope | names
        text = "\n    ".join(["def replay(args):", *lines, *self._body])
        exec(compile(text, "<burn captured step>", "exec"), scope)
        return scope.pop("replay")  # type: ignore[no-any-return]

    def _lines(self) -> list[str]:
        """Return the lines behind the arguments, whose values stand in `v0`, `v1`, ..."""
        replay, places, scope = self.replay, self.places, self.scope
        lines: list[str] = []
        if places.held.containers:
            scope["SAME"] = self.resource.backend.same_objects(places.held.containers)
            lines.append("if not SAME(): return NOT_SERVED")
        for k, look in enumerate(places.held.looks):
            scope |= {f"LOOK{k}": look, f"SEEN{k}": look()}
            lines.append(f"if LOOK{k}() != SEEN{k}: return NOT_SERVED")
        owners: list[str] = []
        for t in places.fixed():
            name = f"T{len(owners)}"
            scope[name] = t
            # Whether a parameter is frozen stands on itself.
            lines.append(f"if {name}.node {_tracks(t)} None: return NOT_SERVED")
            owners.append(name)
        fixed = len(owners)
        for k, part in enumerate(places.moving):
            scope[f"MOVING{k}"] = part.step_tensors
            count = len(part.step_tensors())
            names = [f"t{len(owners) + j}" for j in range(count)]
            lines.append(f"m{k} = MOVING{k}()")
            lines.append(f"if len(m{k}) != {count}: return NOT_SERVED")
            if names:
                lines.append(f"{', '.join(names)}, = m{k}")
            owners += names
            found = part.step_settings()
            plain = not any(s.__class__ in (list, dict) for s in found)
            settings = part.step_settings if plain else partial(places.settings, part)
            ids = [*map(id, settings())]  # `places` holds what they are of
            scope |= {f"SETTINGS{k}": settings, f"I{k}": ids, "ID": id, "MAP": map}
            lines.append(f"if [*MAP(ID, SETTINGS{k}())] != I{k}: return NOT_SERVED")
        for k, owner in enumerate(owners):
            moved = f"{owner}.b.resource is not RESOURCE"
            if k < fixed and scope[owner].b.resource is self.resource:  # a sooner look
                scope[f"B{k}"] = scope[owner].b
                moved = f"{owner}.b is not B{k} and {moved}"
            lines.append(f"if {moved}: MOVED({owner})")
        for k, t in enumerate(places.tensors()):
            scope |= {f"H{k}": t.v.shape, f"K{k}": t.v.dtype}
            lines += [
                f"h_ = {owners[k]}.v",
                f"if h_.dtype is not K{k} or h_.shape != H{k}: return NOT_SERVED",
            ]
        if owners:
            lines.append("del h_")  # whose memory may be written over counts who holds it
        changing = bool(replay.changing)
        if replay.rates or changing:
            scope["RATES"] = places.rates
            lines.append("rates = RATES()")
        for k, rate in replay.rates.items():
            scope[f"Q{k}"] = rate
            lines.append(f"if rates[{k}] != Q{k}: return NOT_SERVED")
        lines += [f"if rates[{k}] != rates[{j}]: return NOT_SERVED" for k, j in replay.tied.items()]
        if changing or replay.draws:
            scope["STREAM"] = self.resource.random_state
            lines.append("seed, counter = STREAM()")
        lines += self._runs(owners, fixed)
        if replay.draws:
            scope["SET_STREAM"] = self.resource.set_random_state
            lines.append(f"SET_STREAM((seed, counter + {replay.draws}))")
        schedules = len(places.schedules)
        for k, schedule in enumerate(places.schedules):
            scope[f"SCHEDULE{k}"] = schedule.step
            lines += [f"SCHEDULE{k}()"] * replay.moves[k]
        for k, counter in enumerate(places.counters):
            scope[f"COUNTER{k}"] = counter
            if replay.moves[schedules + k]:
                lines.append(f"COUNTER{k}.step_count += {replay.moves[schedules + k]}")
        return lines + self._returned()

    def _runs(self, owners: Sequence[str], fixed: int) -> list[str]:
        """Return the lines that run the plans, and give the state its new values.

        `x0`, ... are what the plans made, see `_wanted`.
        """
        replay, scope = self.replay, self.scope
        wanted = [s for s in [*replay.after, *replay.results] if s is not None and s[0] == "made"]
        self._wanted = list(dict.fromkeys(wanted))
        # A result or a new value that is the old value of a state; nobody may write over it.
        old = {
            s[1]
            for s in [*replay.results, *(replay.after[k] for k in self._changes)]
            if s is not None and s[0] == "state"
        }
        allowed = {*self._changes} - old
        first = {"argument": 0, "state": replay.arguments}
        first["constant"] = replay.arguments + len(owners)

        def place(source: Source) -> Any:
            return source[1:] if source[0] == "made" else first[source[0]] + source[1]

        heirs = {
            self._wanted.index(s): first["state"] + k
            for k, s in enumerate(replay.after)
            if s[0] == "made" and k in allowed
        }
        step = self.resource.backend.whole_step(
            replay.runs, [[place(s) for s in froms] for froms in replay.froms],
            first["constant"], replay.constants, [place(s) for s in self._wanted], heirs,
            [c[:3] for c in replay.changing], _Holders(replay.arguments, allowed, len(owners)),
            replay.rematerialise,
        )  # fmt: skip
        self.whole = step
        scope |= {"STEP": step, "RUN": step.written(), "SHIELD": self.resource.backend.shield}
        lines = [f"w{k} = {owners[k]}.v" for k in sorted(old)]
        values = [f"v{k}" for k in range(replay.arguments)] + [f"{o}.v" for o in owners]
        given = [
            "".join(f"{x}, " for x in part)
            for part in (values, [_number(by) for *_, by in replay.changing], owners)
        ]
        # None, before anything ran: this thread writes down a step, in which others are functions.
        run = [
            f"made = RUN(({given[0]}), ({given[1]}), ({given[2]}))",
            "if made is None: return NOT_SERVED",
        ]
        made = "".join(f"x{k}, " for k in range(len(self._wanted)))
        if made:
            run.append(f"{made}= made")
        if not self._changes:
            return [*lines, *run]
        lists = self._lists(owners, fixed)
        run += [*lists, "DEQUE(MAP(SET, rebound, fresh), 0)"]
        replaced = {
            self._wanted.index(s): first["state"] + k
            for k, s in enumerate(replay.after)
            if s[0] == "made" and k in self._changes
        }
        scope |= {"COMING": step.coming(), "RUNNING": step.running.lock, "FAILED": step.failed}
        scope |= {"GET": _payload, "LIST": list, "REPLACED": replaced}
        # What is held in `before` the state held: who counts who holds a value counts right.
        over = [
            f"values = ({given[0]})",
            "coming = COMING(values)",
            "if coming is None: return NOT_SERVED",
            *([f"{made}= coming"] if made else []),
            *lists,
            "before = LIST(MAP(GET, rebound))",
            "with RUNNING:",
            "    DEQUE(MAP(SET, rebound, fresh), 0)",
            f"    try: RUN(values, ({given[1]}), ({given[2]}), coming)",
            "    except BaseException as error_:",
            "        DEQUE(MAP(SET, rebound, before), 0)",
            "        FAILED(coming, {n: values[k] for n, k in REPLACED.items()}, error_)",
            "        raise",
            "del values, before",
        ]
        lines += ["if STEP.overwrites:", "    with SHIELD():"]
        lines += [f"        {line}" for line in over]
        return [*lines, "else:", *(f"    {line}" for line in run)]

    def _lists(self, owners: Sequence[str], fixed: int) -> list[str]:
        """Return the lines that list what gets new values, and the values.

        They are set by one call that no other thread sees half done. Nothing was changed until
        then, so a failed replay leaves the last good state.
        """
        rebound, fresh, twins = [], [], []
        for k in self._changes:
            owner = owners[k]
            rebound.append(owner)
            fresh.append(self._value(self.replay.after[k]))
            # The objects of an optimizer are plain tensors, but may be others in another step.
            if k >= fixed or isinstance(self.scope[owner], Parameter):
                twins.append(f"TWIN({owner}, {fresh[-1]}, rebound, fresh)")
        self.scope |= {"TWIN": _twin, "SET": _set_payload, "DEQUE": deque, "MAP": map}
        lines = [f"rebound = [{', '.join(rebound)}]", f"fresh = [{', '.join(fresh)}]"]
        return [*lines, *twins]

    def _value(self, source: Source) -> str:
        """Return the expression of a value, once the plans have run."""
        kind, k = source[:2]
        if kind == "made":
            return f"x{self._wanted.index(source)}"
        if kind == "constant":
            self.scope |= {f"G{k}": self.replay.constants[k], "STANDS": self._stands}
            return f"STANDS(G{k})"
        return f"v{k}" if kind == "argument" else f"w{k}"

    def _returned(self) -> list[str]:
        """Return the lines that make what the step returns."""
        replay, scope = self.replay, self.scope
        lines: list[str] = []
        leaves: list[str] = []
        for source in replay.results:
            if source is None:
                leaves.append("None")
                continue
            name = f"y{len(leaves)}"
            lines.append(f"{name} = TENSOR(); {name}.b = PLAIN; {name}.node = None")
            lines.append(f"{name}.v = {self._value(source)}")
            leaves.append(name)
        scope |= {"OUT": replay.out, "FILLED": _with_leaves}
        alone = leaves != ["None"] and len(leaves) == 1 and replay.out is None
        tree = f"FILLED(OUT, ({''.join(f'{leaf}, ' for leaf in leaves)}))"
        return [*lines, f"return {leaves[0] if alone else tree}"]


def moved_away(resource: Any, t: Tensor) -> None:
    """Raise, since a tensor of the state is on another device."""
    raise CaptureError(
        "capture", "a captured step stays on its device",
        got=f"{t.b.resource.name}, not {resource.name}",
        remedy="Capture the step again after moving the model.",
    )  # fmt: skip


def _number(source: Source) -> str:
    kind, by = source
    return f"rates[{by}]" if kind == "rate" else f"(seed, counter + {by})"


class _Holders:
    """Says by how many objects of a state each value is held that a step may write over."""

    def __init__(self, arguments: int, allowed: Collection[int], states: int) -> None:
        self._arguments = arguments
        self._allowed = [k in allowed for k in range(states)]

    def __call__(self, owners: Sequence[Any]) -> list[int]:
        """Return it of arguments, none, and of the owners: itself, and the twin of a parameter."""
        found = [0] * self._arguments
        for owner, allowed in zip(owners, self._allowed, strict=True):
            twin = owner._twin if isinstance(owner, Parameter) else None
            both = twin is not None and twin.v is owner.v
            found.append((2 if both else 1) if allowed else 0)
        return found


def _tracks(x: Tensor) -> str:
    """Return the comparison with None that is true where it is tracked otherwise."""
    return "is" if x.node is not None else "is not"


def _twin(owner: Any, value: Any, rebound: list[Any], fresh: list[Any]) -> None:
    """Add the twin of a parameter to what is given a value."""
    if isinstance(owner, Parameter) and owner._twin is not None:
        rebound.append(owner._twin)
        fresh.append(value)


def _with_leaves(out: Any, leaves: Sequence[Tensor | None]) -> Any:
    """Return what a step returns, with tensors where there are some."""
    left = iter(leaves)

    def leaf(other: Any) -> Any:
        tensor = next(left)
        return other if tensor is None else tensor

    return filled(out, leaf)
