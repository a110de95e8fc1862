"""`burn.capture`: a whole step, replayed without running its Python again.

The first two calls of a step run as usual; two more are written down while they run; from then on
the plans of the step run one after the other on the inputs, parameters and states of the moment.
Two records, since what differs between them is what a replay has to bring up to date.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import getrefcount
from types import BuiltinFunctionType, FunctionType
from typing import Any

from burn_core.holdings import VALUES, Holdings
from burn_core.module import Module
from burn_core.parameter import Parameter
from burn_core.replaying import NOT_SERVED, Replay, Source, Writer, filled, moved_away
from burn_core.tree import walk
from burn_dispatch import current_scope
from burn_std import OF_A_LOCAL, ArgumentError, CaptureError
from burn_tensor import Tensor

# Calls that run as usual, so that plans and states exist; records that may fail to agree.
WARM, RECORDS = 2, 6
# Shapes of the arguments whose steps are kept.
INSTANCES = 16

_FUNCTIONS = (type, FunctionType, BuiltinFunctionType)
_SUBJECT = {"capture": "a step", "explain": "a program that is explained"}


def capture(fn: Callable[..., Any], *, state: Any = (), rematerialise: bool = False) -> Capture:
    """Return a function that replays `fn` as one step.

    Every call is one step, with the same results as a call of `fn`: the first ones run as usual,
    later ones are replayed. Tensors that come as arguments may change from call to call; another
    shape is another step, with its own first calls, and so is another value of an argument that is
    no tensor, and another scope (`no_grad`, `autocast`). What `fn` rebinds must be in `state`, and
    so must what others rebind between the calls. Results come detached. Inside another captured
    step it is its function.

    Args:
        fn: the step. Its Python runs in the first calls only: a replay takes no branch anew,
            appends to no list and prints nothing. It may read nothing on the host, and keep no
            tensor that it does not return. A module or optimizer in `state` may get other
            parameters or settings between calls; the step is then taken down again.
        state: modules, optimizers, schedules, tensors, or lists and dicts of them, that the step
            reads and changes. A schedule goes on in a replay as it did in the step.
        rematerialise: compute cheap values (maps, norms, casts) once more where that makes the
            peak of memory of a replay smaller: less memory for some time, with the same bits.

    Raises:
        CaptureError: the device records nothing; later, when the step is called: it reads a value,
            a value escapes from it, or a number or tensor in it changes from call to call.
        ArgumentError: what stands in `state`, or an argument of a call, is of another kind.

    Example:
        >>> device = burn.device("fusion-flex").autodiff()
        >>> model = burn.nn.Linear(2, 1, device=device)
        >>> optimizer = burn.optim.SGD(lr=0.1)
        >>> def train(x, y):
        ...     loss = (model(x) - y).square().mean()
        ...     optimizer.step(model, loss.backward())
        ...     return loss
        >>> step = burn.capture(train, state=(model, optimizer))
        >>> x, y = burn.ones(8, 2, device=device), burn.zeros(8, 1, device=device)
        >>> losses = [step(x, y).item() for _ in range(20)]
        >>> losses[-1] < 0.01 * losses[0] and step.replays == 16
        True
    """
    return Capture(fn, state, rematerialise)


class Capture:
    """A captured step; see `burn.capture`.

    Attributes:
        replays: how many calls were replays.
        lock: held while a call changes the state. A thread that reads a tensor of the state gets
            its value from before the call or from after it; one that holds the lock reads all
            tensors as one step left them: `with step.lock: saved = model.state_dict()`.
    """

    def __init__(self, fn: Callable[..., Any], state: Any, rematerialise: bool = False) -> None:
        self._fn = fn
        self._rematerialise = rematerialise
        self._state = list(_flat(state))
        for part in self._state:
            if not _is_state(part):
                raise ArgumentError(
                    "capture", "state holds modules, optimizers, schedules and tensors",
                    got=type(part).__name__,
                )  # fmt: skip
        self._instances: dict[Any, _Instance] = {}
        # Of the last replay: looks nothing up where arguments and scope are like the last ones.
        self._quick: Callable[[Sequence[Any]], Any] | None = None
        self.lock = threading.RLock()
        self.replays = 0
        functools.update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        name = getattr(self._fn, "__qualname__", type(self._fn).__name__)
        return f"<captured step {name}, {self.replays} replays>"

    def __reduce__(self) -> Any:
        raise CaptureError(
            "capture", "a captured step is neither copied nor pickled",
            got="its function would go on with the state of the original",
            remedy="Capture the function again, with the copy as its state.",
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step."""
        quick = self._quick
        if quick is not None and not kwargs:
            out = quick(args)
            if out is not NOT_SERVED:
                self.replays += 1
                return out
        return self._slow(args, kwargs)

    def _slow(self, args: Any, kwargs: Any) -> Any:
        given = [*_flat((args, kwargs))]
        tensors = [x for x in given if isinstance(x, Tensor)]
        shapes = [_looks(x) for x in given]
        # One tensor in two places is another step: afterwards nobody knows which place was meant.
        first: dict[int, int] = {}
        twice = tuple([first.setdefault(id(x.v), k) for k, x in enumerate(tensors)])
        scope = current_scope()
        # Who measures sees the same step.
        key = (_form((args, kwargs)), tuple(shapes), twice, scope._replace(watched=False))
        with self.lock:
            instance = self._instances.get(key)
            if instance is None:
                if len(self._instances) >= INSTANCES:
                    del self._instances[next(iter(self._instances))]
                made = _Instance(self._fn, self._state, self.lock, self._rematerialise)
                instance = self._instances[key] = made
        out, replayed = instance.step(args, kwargs, tensors)
        self.replays += replayed
        plain = not kwargs and all(x.__class__ is Tensor for x in args)
        alone = len(first) == len(tensors)
        self._quick = instance.quick(tensors, scope) if replayed and alone and plain else None
        return out


class _Record:
    """One step as it ran."""

    def __init__(self, log: Any, tensors: Sequence[Tensor], places: Places, rates: list[float],
                 counter: tuple[int, int]) -> None:  # fmt: skip
        self.log = log
        self.rates = rates
        self.counter = counter
        self.arguments = len(tensors)
        self.inputs: dict[int, Source] = {}
        self.ambiguous: set[int] = set()
        for k, t in enumerate(tensors):
            self.inputs.setdefault(id(t.v), ("argument", k))
        for k, t in enumerate(places.tensors()):
            if self.inputs.setdefault(id(t.v), ("state", k)) != ("state", k):
                self.ambiguous.add(id(t.v))
        # Held, so that no other value can get one of these ids while they are looked up.
        self.held = [t.v for t in (*tensors, *places.tensors())]
        self.froms: list[list[Source]] = []
        self.constants: dict[int, int] = {}
        self.constant_values: list[Any] = []
        self.out: Any = None
        self.results: list[Source | None] = []
        self.after: list[Source] = []
        self.moves: list[int] = []
        self.changed: str | None = None
        self.draws = 0

    def source(self, value: Any, upto: int) -> Source:
        """Return where a value came from, for the run number `upto` or what follows all."""
        for e in range(upto - 1, -1, -1):
            for k, made in enumerate(self.log.runs[e].outputs):
                if made is value:
                    return "made", e, k
        found = self.inputs.get(id(value))
        if found is not None:
            if id(value) in self.ambiguous:
                raise CaptureError(
                    "capture", "arguments and tensors of the state are different tensors",
                    got=f"one {value.dtype.name}{list(value.shape)} as two of them",
                    remedy="Copy one of them first: x * 1.",
                )  # fmt: skip
            return found
        k = self.constants.setdefault(id(value), len(self.constants))
        if k == len(self.constant_values):
            self.constant_values.append(value)
        return "constant", k

    def sources(self) -> list[list[Source]]:
        """Return where the inputs of every run came from."""
        return [
            [self.source(v, e) for v in run.inputs] for e, run in enumerate(self.log.runs)
        ]  # fmt: skip


class Places:
    """The tensors and rates of a state.

    Attributes:
        moving: parts whose tensors may be others in another step, optimizers say.
        schedules: what gives rates; `counters` is what else counts steps.
        held: what Python code of the modules can read.
    """

    def __init__(self, state: Sequence[Any]) -> None:
        self.state = state
        self._fixed: list[Tensor] = []
        for part in state:
            if isinstance(part, Module):
                self._fixed += [*part.parameters(), *part.buffers()]
            elif isinstance(part, Tensor):
                self._fixed.append(part)
        self._fixed += _plain_tensors(state, self._fixed)
        self.moving = [part for part in state if hasattr(part, "step_tensors")]
        # What groups of parameters make of the rate that the step is given.
        self._grouped = [part for part in self.moving if getattr(part, "groups", None)]
        self.schedules = [part for part in state if _is_schedule(part)]
        self.counters = [part for part in state if hasattr(part, "step_count")]
        modules = [part for part in state if isinstance(part, Module)]
        twins = [t._twin for t in self._fixed if isinstance(t, Parameter) and t._twin is not None]
        self.held = Holdings(modules, [*self._fixed, *twins])
        # Kept alive, so that no other object can get one of their ids.
        self._kept = [self.settings(part) for part in self.moving]
        self._ids = self._looked()
        # A lazy parameter gets its value in the first call.
        made = [t for t in self.tensors() if getattr(t, "is_initialized", True)]
        self._kinds = [(t.v.shape, t.dtype) for t in made]

    def _looked(self) -> list[Any]:
        settings = [[*map(id, self.settings(part))] for part in self.moving]
        # Whether a parameter is frozen stands on itself.
        return [self.held.now(), settings, [t.node is None for t in self._fixed]]

    def changed(self) -> str | None:
        """Return what modules hold otherwise than before, by name."""
        return self.held.difference(self._ids[0])

    @staticmethod
    def settings(part: Any) -> list[Any]:
        """Return what a step depends on of a part, one object each; of containers the contents."""
        out: list[Any] = []
        for setting in part.step_settings():
            kind = setting.__class__
            out += [setting, *setting] if kind is list else [setting]
            out += [*setting.values()] if kind is dict else []
        return out

    def unchanged(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether modules and optimizers hold the same parts and settings as before."""
        kinds = [(t.v.shape, t.dtype) for t in tensors]
        return self._looked() == self._ids and kinds == self._kinds

    def fixed(self) -> list[Tensor]:
        """Return the tensors of modules, and those that stand in the state by themselves."""
        return [*self._fixed]

    def tensors(self) -> list[Tensor]:
        """Return the tensors; the objects of an optimizer may change from step to step."""
        found = self.fixed()
        for part in self.moving:
            found += part.step_tensors()
        return found

    def set_apart(self, resource: Any) -> None:
        """Give each tensor a payload that no other one has: what is read shows whose it was.

        A frozen weight and a snapshot of it may be one value now and two after the next call.
        """
        backend = resource.backend
        for t in self.tensors():
            if t.b.resource is not resource:
                moved_away(resource, t)
            old = t.v
            new = backend.standing_for(backend.settled(old))
            twin = t._twin if isinstance(t, Parameter) else None
            if twin is not None and twin.v is old:
                twin.v = new
            t.v = new

    def rates(self) -> list[float]:
        """Return the numbers that a step takes from the state."""
        given = [s.lr for s in self.schedules]
        out: list[float] = []
        for lr in given:
            out += map(float, lr.values()) if isinstance(lr, Mapping) else [float(lr)]
        for part in self.moving:
            out += part.step_rates()
        for part in self._grouped:
            for lr in given:
                out += part.rates_of(lr)
        return out

    def sources(self) -> dict[int, int]:
        """Return the rate that each is made of which the groups of an optimizer make themselves."""
        bases, top = [], 0
        for s in self.schedules:
            lr = s.lr
            names = [*lr] if isinstance(lr, Mapping) else [""]
            bases.append(top + names.index("") if "" in names else top)
            top += len(names)
        top += sum(len(part.step_rates()) for part in self.moving)
        out: dict[int, int] = {}
        for part in self._grouped:
            for base, s in zip(bases, self.schedules, strict=True):
                made = range(top, top + len(part.rates_of(s.lr)))
                out |= dict.fromkeys(made, base)
                top = made.stop
        return out

    def counts(self) -> list[int]:
        """Return how far what counts steps has come."""
        return [*(s.position for s in self.schedules), *(c.step_count for c in self.counters)]

    def move(self, moves: Sequence[int]) -> None:
        """Count on, as steps do that run."""
        own = len(self.schedules)
        for schedule, by in zip(self.schedules, moves[:own], strict=True):
            for _ in range(by):
                schedule.step()
        for counter, by in zip(self.counters, moves[own:], strict=True):
            counter.step_count += by


class _Instance:
    """The step for arguments of one form."""

    def __init__(
        self, fn: Callable[..., Any], state: Sequence[Any], lock: Any, rematerialise: bool
    ) -> None:
        self.fn = fn
        self.state = state
        self.lock = lock
        self.rematerialise = rematerialise
        self.calls = 0
        self.records: list[_Record] = []
        self.tries = 0
        self._writer: Writer | None = None
        self._quick: tuple[Any, Callable[[Sequence[Any]], Any]] | None = None
        self.places: Places | None = None
        self.resource: Any = None

    def step(self, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> tuple[Any, bool]:
        """Run one step; return its result and whether it was a replay."""
        writer = self._writer
        if writer is not None and not self.resource.backend.in_step():
            out = writer.run(tensors)
            if out is not NOT_SERVED:
                return out, True
        with self.lock:
            return self._step(args, kwargs, tensors)

    def _step(self, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> tuple[Any, bool]:
        if self.places is None:
            places = Places(self.state)
            self.resource = _resource([*tensors, *places.tensors()])
            if not self.resource.backend.in_step():
                with self.resource.backend.step_log():
                    pass  # says at the first call if the device cannot do it
            self.places = places
        if self.resource.backend.in_step():
            return _mapped(self.fn(*args, **kwargs), _detached), False
        self.calls += 1
        if self.calls <= WARM:
            out = _mapped(self.fn(*args, **kwargs), _detached)
            self.resource.backend.flush()
            self.places = Places(self.state)
            return out, False
        if self._writer is not None:
            out = self._writer.run(tensors)  # another thread may have made it meanwhile
            if out is not NOT_SERVED:
                return out, True
            self._writer = self._quick = None
            self.records, self.tries = [], 0
        if not self.places.unchanged(self.places.tensors()):
            # Somebody gave a module another parameter or setting: the step begins anew.
            self.records, self.tries, self.calls = [], 0, 0
            return self._step(args, kwargs, tensors)
        return self._recorded(args, kwargs, tensors), False

    def quick(self, tensors: Sequence[Tensor], scope: Any) -> Callable[[Sequence[Any]], Any] | None:
        """Return the replay for tensors like these in a scope, which it checks."""
        writer = self._writer
        if writer is None:
            return None
        if self._quick is None or self._quick[0] is not scope:
            self._quick = scope, writer.quick(tensors, scope)
        return self._quick[1]

    # ---- writing down -------------------------------------------------------------------------

    def _recorded(self, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> Any:
        places, resource = self.places, self.resource
        assert places is not None  # noqa: S101 - made by `step`
        backend = resource.backend
        for t in tensors:
            backend.settled(t.v)
        places.set_apart(resource)
        counts = places.counts()
        before = resource.random_state()
        with backend.step_log() as log:
            record = _Record(log, tensors, places, places.rates(), before)
            out = _mapped(self.fn(*args, **kwargs), _detached)
        record.moves = [now - n for now, n in zip(places.counts(), counts, strict=True)]
        record.draws = resource.random_state()[1] - before[1]
        last = len(log.runs)
        for leaf in _flat(out):
            is_tensor = isinstance(leaf, Tensor)
            record.results.append(record.source(leaf.v, last) if is_tensor else None)
        record.after = [record.source(t.v, last) for t in places.tensors()]
        record.out = _mapped(out, lambda t: None)
        record.froms = record.sources()
        record.held = []  # what the state held before must not stay in memory
        self.records.append(record)
        self.tries += 1
        record.changed = places.changed()
        # What the step itself changed is no change from outside.
        self.places = Places(self.state)
        if len(self.records) == 2:
            self._agreed(*self.records)
        return out

    def _agreed(self, old: _Record, new: _Record) -> None:
        """Make the replay of two records, or wait for another one if they are of other plans."""
        runs, others = old.log.runs, new.log.runs
        same = len(runs) == len(others) and all(
            a.same_program(b) for a, b in zip(runs, others, strict=True)
        )
        same = same and old.froms == new.froms and old.after == new.after
        if not same and self.tries < RECORDS:
            self.records = [new]
            return
        if new.changed is not None:  # a list that grows makes other plans, too
            raise CaptureError(
                "capture", "a step changes nothing of its modules but tensors",
                got=f"another {new.changed} after each call",
                remedy="Keep it in a Buffer, or change it outside of the step.",
            )  # fmt: skip
        if not same:
            raise CaptureError(
                "capture", "a step does the same operations at every call",
                got=f"{len(runs)} and {len(others)} plans, or other operations in them",
                remedy="Take branches that depend on Python values out of the step.",
            )  # fmt: skip
        _check_same(old, new)
        places = self.places
        assert places is not None  # noqa: S101 - made by `step`
        changing = [
            (e, *number)
            for e, (a, b) in enumerate(zip(runs, others, strict=True))
            for number in _changing(a, b, old, new)
        ]
        followed = {by[1] for *_, by in changing if by[0] == "rate"}
        constants = [self.resource.backend.settled(v) for v in new.constant_values]
        fixed, tied = _checked(old.rates, new.rates, followed, places.sources())
        self.records = []
        _check_escapes(new)
        replay = Replay(
            new.log.runs, new.froms, changing, new.out, new.results, new.after, constants, fixed,
            tied, new.moves, new.draws, new.arguments, self.rematerialise,
        )  # fmt: skip
        self._writer = Writer(replay, places, self.resource, self.lock)
        for run in (*runs, *others):
            run.inputs = run.outputs = ()


def _changing(a: Any, b: Any, old: _Record, new: _Record) -> list[tuple[int, int, Source]]:
    """Return which numbers of a run change from step to step, and what they follow."""
    out: list[tuple[int, int, Source]] = []
    if a.extents() != b.extents():
        raise CaptureError(
            "capture", "shapes inside a step stay the same", got="an extent that changes",
            remedy="Keep to one shape, for example with a cache of fixed capacity.",
        )  # fmt: skip
    for slot, k, op, name in b.places():
        one, two = a.numbers[slot][k], b.numbers[slot][k]
        if name == "key":
            offset = two[1] - new.counter[1]
            same = one[1] - old.counter[1] == offset and two[0] == new.counter[0]
            if not same or offset < 0:
                raise CaptureError(
                    op, "random numbers of a step come from the device's stream",
                    got="a stream that is set inside of it", remedy="Seed outside of the step.",
                )  # fmt: skip
            out.append((slot, k, ("key", offset)))
        elif repr(one) != repr(two):
            pairs = enumerate(zip(old.rates, new.rates, strict=True))
            by = next((j for j, (x, y) in pairs if (x, y) == (one, two)), None)
            if by is None:
                unknown = "put the schedule it comes from into state=."
                if old.rates != new.rates:
                    unknown = "take it as a schedule of burn.optim.lr_scheduler in state= gives it."
                raise CaptureError(
                    op, f"the number {name} changes from call to call", got=f"{one}, then {two}",
                    remedy=f"Pass it as a tensor, or {unknown}",
                )  # fmt: skip
            out.append((slot, k, ("rate", by)))
    return out


def _checked(
    old: list[float], new: list[float], followed: set[int], sources: Mapping[int, int]
) -> tuple[dict[int, float], dict[int, int]]:
    """Return what rates have to be in a replay that no number follows.

    That is what they were, or another one that changed as they did and may go another way later.
    What is made of a rate is no cause of its own.
    """
    pairs = [*zip(old, new, strict=True)]
    # One that stood still while a group's changed, as with another `optimizer.lr`, may be a
    # constant of the step.
    moved = {k for k, (before, after) in enumerate(pairs) if before != after}
    known = followed | ({sources[k] for k in followed if k in sources} & moved)
    fixed: dict[int, float] = {}
    tied: dict[int, int] = {}
    for k, pair in enumerate(pairs):
        if k in known or k in sources:
            continue
        twin = next((j for j in followed if pairs[j] == pair), None)
        if twin is None:
            fixed[k] = new[k]
        else:
            tied[k] = twin
    return fixed, tied


def _check_same(old: _Record, new: _Record) -> None:
    """Check that both records read the same outside tensors and gave the same kind of result."""
    pairs = zip(old.constant_values, new.constant_values, strict=True)
    for one, two in pairs:
        if one is not two:
            owner = _owner(new, two)
            of = "" if owner is None else f" of {owner}"
            raise CaptureError(
                "capture", "a step reads tensors that another call replaced or made anew",
                got=f"{two.dtype.name}{list(two.shape)}{of}",
                remedy="Pass it as an argument, or put its owner into state=."
                if owner is None else f"Put {owner} into state=.",
            )  # fmt: skip
    same = [repr(x) for x in _flat(old.out)] == [repr(x) for x in _flat(new.out)]
    if not same or old.results != new.results or old.moves != new.moves:
        raise CaptureError(
            "capture", "a step returns the same Python values at every call",
            got=f"{old.out!r}, then {new.out!r}", remedy="Return tensors.",
        )  # fmt: skip


def _check_escapes(record: _Record) -> None:
    """Check that nothing but results and state holds a value of the step."""
    gc.collect()
    kept = {s[1:] for s in [*record.results, *record.after] if s is not None and s[0] == "made"}
    runs = record.log.runs
    read = [v for run in runs for v in run.inputs]
    for e, run in enumerate(runs):
        for k in range(len(run.outputs)):
            if (e, k) in kept:
                continue
            v = run.outputs[k]
            # references: outputs of the run, this name, and readers
            if getrefcount(v) > 1 + OF_A_LOCAL + 2 * sum(r is v for r in read):
                raise CaptureError(
                    run.name_of(k), "a value of a captured step escapes from it",
                    got=f"{v.dtype.name}{list(v.shape)}",
                    remedy="Return it, or put what holds it into state=.",
                )  # fmt: skip


def _owner(record: _Record, wanted: Any) -> str | None:
    """Return who was given a value by the step and is not in the state."""
    from burn_core.memory import owners_of

    kept = {s[1:] for s in [*record.results, *record.after] if s is not None and s[0] == "made"}
    made = [
        v
        for e, run in enumerate(record.log.runs)
        for k, v in enumerate(run.outputs)
        if (e, k) not in kept
    ]
    alike = [v for v in made if v.shape == wanted.shape and v.dtype is wanted.dtype]
    return owners_of(alike) or owners_of(made)


# ---- states, arguments and results -------------------------------------------------------------


def _plain_tensors(state: Sequence[Any], known: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors of modules, on the device of the others, that are no parameters."""
    home = {id(t.b.resource) for t in known}
    taken = {id(t._twin) for t in known if isinstance(t, Parameter)} | set(map(id, known))
    leaves = [
        leaf for part in state if isinstance(part, Module)
        for _, _, _, leaf in walk(part) if isinstance(leaf, Tensor) and id(leaf) not in taken
    ]  # fmt: skip
    found = {
        id(t): t for t in leaves
        if (id(t.b.resource) in home if home else t.b.resource.backend.records)
    }  # fmt: skip
    return [*found.values()]


def _is_schedule(part: Any) -> bool:
    return all(hasattr(part, name) for name in ("lr", "step", "position"))


def _is_state(part: Any) -> bool:
    return isinstance(part, (Module, Tensor)) or hasattr(part, "step_tensors") or _is_schedule(part)


def _resource(tensors: Sequence[Tensor], op: str = "capture") -> Any:
    found = {id(t.b.resource): t.b.resource for t in tensors}
    if len(found) != 1:
        names = sorted(r.name for r in found.values())
        given = "Give tensors as arguments, or modules in state=, of one device."
        raise CaptureError(
            op, f"{_SUBJECT[op]} runs on one device", got=", ".join(names) or "no tensor",
            remedy=given if op == "capture" else "Give tensors of one device as arguments.",
        )  # fmt: skip
    return next(iter(found.values()))


def _looks(x: Any) -> Any:
    """Return what a step depends on of an argument.

    Raises:
        ArgumentError: it may change without being seen to.
    """
    if isinstance(x, Tensor):
        return x.shape, x.dtype, id(x.b), x.node is not None
    if isinstance(x, _FUNCTIONS):
        return x
    if not isinstance(x, VALUES):
        raise ArgumentError(
            "capture", "arguments of a captured step are tensors, numbers, names and functions",
            got=type(x).__name__,
            remedy="Make a tensor of an array; put what holds tensors into state=.",
        )  # fmt: skip
    return x.__class__, repr(x)


def _detached(x: Tensor) -> Any:
    return x.b.resource.plain_context().make(x.v)


def _flat(tree: Any) -> Iterator[Any]:
    """Yield the leaves of lists, tuples and dicts."""
    if isinstance(tree, dict):
        for key in tree:
            yield from _flat(tree[key])
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _flat(part)
    else:
        yield tree


def _form(tree: Any) -> Any:
    """Return lists, tuples and dicts without their leaves, as a key."""
    if isinstance(tree, dict):
        return "dict", tuple((key, _form(part)) for key, part in tree.items())
    if isinstance(tree, (list, tuple)):
        return tree.__class__, tuple(_form(part) for part in tree)
    return None


def _mapped(tree: Any, fn: Callable[[Tensor], Any]) -> Any:
    """Return a tree with its tensors replaced."""
    return filled(tree, lambda x: fn(x) if isinstance(x, Tensor) else x)
