"""What optimizers share: groups of parameters, state, one recorded update, save and restore.

An optimizer is a value of its own: it holds settings and state, and is given model and gradients
at each step. State is keyed by the identity of a parameter and saved under its path.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from itertools import chain, repeat
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

from burn_core import Module, Parameter, ParamGroup, Selector, group_of
from burn_optim.gradients import Gradients
from burn_optim.loans import Loans
from burn_optim.placing import moved, plain_context, snapshot
from burn_optim.ready import Owned, Part, Parts, public
from burn_std import (
    ArgumentError,
    Closed,
    DType,
    DTypeError,
    ShapeError,
    StoreError,
    need_dict,
    unknown_keyword,
    unwritten,
)
from burn_std.dtypes import int64
from burn_tensor import Tensor

# C-level setter of the payload slot: a loop over it is one call that no signal can split.
_set_payload: Any = Tensor.v.__set__  # type: ignore[misc]

# What PyTorch's optimizers have, and what to write instead.
_OTHERWISE = {
    "zero_grad": "Nothing accumulates, there is nothing to zero.",
    "param_groups": "Look at opt.groups; hand rates to opt.step(model, grads, lr=...).",
}

# What PyTorch's optimizers take, and what to write instead.
_SETTINGS = dict.fromkeys(
    ("foreach", "fused", "capturable", "differentiable"),
    "Leave it out: a step is one operation for all parameters, on every device.",
) | {"params": "An optimizer holds no parameters: write opt.step(model, grads)."}

# An argument that has to be given; without it the call is refused in words, not by Python.
_NEEDED: Any = None

# One rate for all, or by name of group; "" is the rate of what no group takes.
Rates = float | Mapping[str, float]


class Group:
    """Parameters with an optimizer of their own.

    Attributes:
        name: what rates by group are keyed on.
        selector: which parameters.
        optimizer: holds their settings and state.
        own_rate: it has a rate of its own; else it follows the base.
    """

    __slots__ = ("name", "optimizer", "own_rate", "selector")

    def __init__(
        self, name: str, selector: ParamGroup, optimizer: Optimizer, own_rate: bool
    ) -> None:
        self.name = name
        self.selector = selector
        self.optimizer = optimizer
        self.own_rate = own_rate


class Optimizer(Closed):
    """Base of optimizers; a subclass says which state a parameter has and writes `update`.

    Attributes:
        lr: learning rate; a schedule or the caller may change it at any time.
        groups: parameters with other settings, in the order they were added.
        slots: names of the state tensors per parameter.
        shared: counts that the parameters of a group have in common: dtype and first value.
    """

    slots: tuple[str, ...] = ()
    shared: Mapping[str, tuple[DType, float]] = {"step": (int64, 0)}

    otherwise_set: ClassVar[Mapping[str, str]] = _OTHERWISE | {"learning_rate": "Set opt.lr."}

    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse what a captured step would not see."""
        super().__init_subclass__(**kwargs)
        need_dict(cls, "A captured step looks at the attributes of an optimizer.")

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the settings, which a group of parameters takes over in part."""
        if args and not isinstance(args[0], Real):
            name = cls.__name__
            raise ArgumentError(
                name, "lr is a number; an optimizer holds no parameters",
                got=type(args[0]).__name__,
                remedy=f"Write opt = {name}(lr=...), and opt.step(model, grads).",
            )  # fmt: skip
        error = unknown_keyword(cls.__name__, cls.__init__, kwargs, _SETTINGS)
        if error is not None:
            raise error
        made = super().__new__(cls)
        made._given = (args, kwargs)
        return made

    def __init__(self, lr: float, **settings: float | bool) -> None:
        name = type(self).__name__
        given: Any = lr
        if not isinstance(given, Real):
            raise ArgumentError(
                name, "lr is a number; an optimizer holds no parameters", got=type(given).__name__,
                remedy=f"Write opt = {name}(lr=...), and opt.step(model, grads).",
            )  # fmt: skip
        for key, value in {"lr": lr, **settings}.items():
            if not isinstance(value, bool) and not value >= 0:
                raise ArgumentError(name, f"{key} must not be negative", got=value)
        self.lr = lr
        self.groups: list[Group] = []
        # Found by identity; weak keys would compare parameters by ==, which is elementwise.
        self._state: dict[Parameter, dict[str, Tensor]] = {}
        self._owners: dict[Parameter, Group | None] = {}
        self._parts = Parts()
        self._loans = Loans()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            text = f"{type(self).__name__}.{name}: optimizers have no such attribute."
            hint = _OTHERWISE.get(name)
            raise AttributeError(f"{text} {hint}" if hint else text)

    # ---- copies -------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with a state of its own, for the same model or for a copy of it."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        # Owners are groups of this optimizer, and are found anew.
        own = {k: v for k, v in vars(self).items() if k not in ("_owners", "_loans")}
        made.__dict__.update(deepcopy(own, memo))
        made._owners = {}
        made._loans = Loans((self._loans.source(p), memo[id(p)]) for p in self._state)
        return made

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        # Whose states they may be is worked out again; that would bring another model's weights.
        return {k: v for k, v in vars(self).items() if k != "_loans"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        # The model may come from another pickle; its parameters have their ids then too.
        self._loans = Loans((None, p) for p in self._state)

    def _state_of(self, p: Parameter) -> dict[str, Tensor]:
        """Return the state of a parameter, empty before its first step."""
        if p not in self._state and self._loans:
            lender = self._loans.lender(p)
            return {} if lender is None else self._state[lender]
        return self._state.get(p, {})

    def _settled(self, p: Parameter) -> dict[str, Tensor]:
        """Return the state of a parameter that is used with its model: it is of no other now."""
        if self._loans:
            own = p if p in self._state else self._loans.lender(p)
            if own is not None:
                self._loans.settle(own)
                if own is not p:
                    self._state[p] = self._state.pop(own)
        return self._state.get(p, {})

    # ---- what a subclass says -----------------------------------------------------------------

    def update(
        self,
        ctx: Any,
        lr: float,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        counts: dict[str, Tensor],
        skip: Tensor | None,
    ) -> list[Tensor]:
        """Return new params, new states slot by slot, and new counts, from one operation.

        Args:
            ctx: the context to call the operation on.
            lr: learning rate of these parameters.
            params: values of one dtype on one resource.
            grads: a gradient for each.
            state: by slot, one tensor per parameter; empty for a slot that is not used.
            counts: the shared tensors of rank 0.
            skip: bool of rank 0, or None.
        """
        raise unwritten(self, "update")

    def slot_shapes(self, p: Parameter) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state tensors that a parameter needs, by slot."""
        return dict.fromkeys(self.active_slots(), p.shape)

    def active_slots(self) -> tuple[str, ...]:
        """Return the names of the state tensors that the settings need."""
        return self.slots

    def first_value(self, slot: str) -> float:
        """Return what a state tensor is filled with at first."""
        return 0.0

    def check(self, path: str, p: Parameter) -> None:
        """Raise for a parameter that this optimizer cannot update."""

    # ---- groups -------------------------------------------------------------------------------

    def add_group(
        self,
        selector: Selector | None,
        optimizer: Optimizer | None = None,
        /,
        *,
        name: str | None = None,
        **settings: Any,
    ) -> Self:
        """Give some parameters settings, or a whole optimizer, of their own.

        The last group that matches a parameter has it. A group without an `lr` follows the base
        rate; one with its own keeps its ratio to the base when a step is given another rate.

        Args:
            selector: a path, paths, a compiled regular expression, a function of (path,
                parameter) or a `ParamGroup`.
            optimizer: updates them; one of this class with changed settings if None.
            name: what rates by group are keyed on; `group0`, `group1`, ... if None.
            **settings: what differs from this optimizer's own settings.

        Returns:
            This optimizer.

        Raises:
            ArgumentError: a setting is unknown or out of range, a name is taken, or the group's
                optimizer has groups itself.

        Example:
            >>> import re
            >>> opt = burn.optim.AdamW(lr=1e-3).add_group(re.compile("bias$"), weight_decay=0.0)
            >>> opt.groups[0].optimizer.weight_decay
            0.0
        """
        where = f"{type(self).__name__}.add_group"
        own_rate = optimizer is not None or "lr" in settings
        if optimizer is None:
            optimizer = self._like(settings, where)
        elif settings:
            raise ArgumentError(where, "settings or an optimizer, not both", got=sorted(settings))
        if optimizer.groups:
            raise ArgumentError(where, "groups do not nest", got=f"{len(optimizer.groups)} groups")
        name = name if name is not None else f"group{len(self.groups)}"
        if not name or any(g.name == name for g in self.groups):
            raise ArgumentError(where, "a group has a name of its own", got=repr(name))
        self.groups.append(Group(name, group_of(selector), optimizer, own_rate))
        self._owners.clear()
        return self

    def _like(self, settings: Mapping[str, Any], where: str) -> Optimizer:
        signature = inspect.signature(type(self).__init__)
        unknown = sorted(set(settings) - set(list(signature.parameters)[1:]))
        if unknown:
            raise ArgumentError(
                where, "no such setting", got=unknown,
                remedy=f"There are {', '.join(list(signature.parameters)[1:])}.",
            )  # fmt: skip
        args, kwargs = self._given
        bound = signature.bind(None, *args, **kwargs).arguments
        given = {k: v for k, v in bound.items() if k != "self"}
        return type(self)(**{**given, **settings})

    def _owned(self, model: Module) -> Owned:
        """Return every parameter with the group that has it."""
        params = [*model.parameters()]
        if not self.groups:
            return [(p, None) for p in params]
        owners = self._owners
        if not all(p in owners for p in params):
            for path, p in model.named_parameters():
                if p not in owners:
                    found = [g for g in self.groups if g.selector.matches(path, p)]
                    owners[p] = found[-1] if found else None
        return [(p, owners[p]) for p in params]

    def used_groups(self, model: Module) -> set[str]:
        """Return the names of the groups that have parameters of a model, `""` for those in none.

        Args:
            model: whose parameters.
        """
        return {"" if group is None else group.name for _, group in self._owned(model)}

    def _rate(self, group: Group | None, lr: Rates | None) -> float:
        named = lr if isinstance(lr, Mapping) else {}
        base = named.get("") if isinstance(lr, Mapping) else lr
        base = self.lr if base is None else base
        if group is None:
            return base
        if group.name in named:
            return named[group.name]
        if not group.own_rate:
            return base
        own = group.optimizer.lr
        return own if base == self.lr or not self.lr else own * (base / self.lr)

    # ---- the step -----------------------------------------------------------------------------

    def step(
        self,
        model: Module = _NEEDED,
        grads: Gradients = _NEEDED,
        lr: Rates | None = None,
        *,
        keep: bool = False,
        skip: Tensor | None = None,
        flush: bool = True,
    ) -> None:
        """Update the parameters of a model; one recorded operation per group and dtype.

        Nothing is read on the host.

        Args:
            model: whose trainable parameters are updated; those without gradient stay.
            grads: what `loss.backward()` returned. The gradients are taken out of it.
            lr: learning rate of this step, or rates by name of group (`""` is the base);
                `self.lr` if None.
            keep: leave the gradients in `grads`.
            skip: bool of rank 0; where True everything stays as it was (loss scaling).
            flush: hand the recorded step to the device; False leaves the recording open for what
                belongs to the same step, as an average of the weights does.

        Raises:
            ArgumentError: `grads` holds no gradient of the model, a rate has the name of no group,
                or this optimizer cannot update a parameter.
            DTypeError: `grads` holds no gradients at all, as a loss.
        """
        given: Any = grads
        if model is _NEEDED or given is _NEEDED:
            raise ArgumentError(
                f"{type(self).__name__}.step", "takes a model and its gradients",
                got="no model" if model is _NEEDED else type(model).__name__,
                remedy="An optimizer holds no parameters: write opt.step(model, loss.backward()).",
            )  # fmt: skip
        if isinstance(given, Tensor) or not hasattr(given, "take"):
            raise DTypeError(
                f"{type(self).__name__}.step", "grads is what backward returned",
                got=type(given).__name__, remedy="Write opt.step(model, loss.backward()).",
            )  # fmt: skip
        trained: Any = model
        if not isinstance(trained, Module):
            raise ArgumentError(
                f"{type(self).__name__}.step", "the model is a module", got=type(trained).__name__,
                remedy="Write opt.step(model, loss.backward()).",
            )  # fmt: skip
        if isinstance(lr, Mapping):
            unknown = sorted(set(lr) - {"", *(g.name for g in self.groups)})
            if unknown:
                raise ArgumentError(f"{type(self).__name__}.step", "no such group", got=unknown)
        backends = self._step(model, grads, lr, keep, skip)
        # This frame holds no tensor of the step, so the recorder sees every temporary as dead.
        if flush:
            for backend in backends:
                backend.flush()

    def _step(
        self, model: Module, grads: Gradients, lr: Rates | None, keep: bool, skip: Tensor | None
    ) -> list[Any]:
        owned = self._owned(model)
        take = grads.get if keep else grads.take
        found: list[Any] = [take(p) for p, _ in owned]
        missing = [k for k, g in enumerate(found) if g is None]
        parts = self._parts.find(owned, missing)
        if parts is None:
            parts = self._divided(model, owned, found)
            self._parts.keep(self, owned, missing, parts)
        used = []
        for part in parts:
            first = part.params[0]
            ctx = plain_context(first)
            given: list[Any] = []
            for k in part.places:
                g = found[k]
                given.append(g if g.b is ctx and g.node is None else ctx.make(g.v))
            g = None
            part.owner(self)._update_together(ctx, part, given, self._rate(part.group, lr), skip)
            used.append(first.b.resource.backend)
        return used

    def _divided(self, model: Module, owned: Owned, found: list[Any]) -> list[Part]:
        """Return which parameters are updated together; those at their first step get a state."""
        parts: dict[Any, Part] = {}
        begun: dict[Any, dict[str, Tensor]] = {}
        followed: dict[Any, Tensor] = {}
        for k, (p, group) in enumerate(owned):
            if found[k] is None:
                continue
            owner = self if group is None else group.optimizer
            state = owner._settled(p) or owner._begin(model, p, begun)
            if not owner._is_there(p, state):
                owner._state[p] = state = owner._following(p, state, followed)
            key = (id(owner), id(p.b.resource), p.dtype, id(state["step"]), tuple(state))
            part = parts.get(key)
            if part is None:
                part = parts[key] = Part(group)
            part.places.append(k)
            part.params.append(p)
        if not parts:
            raise ArgumentError(
                f"{type(self).__name__}.step",
                "grads holds no gradient of this model's parameters",
                remedy="Is the model on an autodiff device, and did it make the loss?",
            )
        for part in parts.values():
            part.settle(part.owner(self))
        return [*parts.values()]

    def _begin(
        self, model: Module, p: Parameter, begun: dict[Any, dict[str, Tensor]]
    ) -> dict[str, Tensor]:
        """Return the state of a parameter at its first step.

        Those that start together share their counts, so that one operation updates them all.
        """
        self.check(next((path for path, q in model.named_parameters() if q is p), "?"), p)
        ctx = plain_context(p)
        state: dict[str, Tensor] = {
            name: ctx.at_once("full", p.dtype, shape, self.first_value(name))
            for name, shape in self.slot_shapes(p).items()
        }
        key = (id(self), id(ctx))
        if key not in begun:
            begun[key] = {
                name: ctx.at_once("full", dtype, (), value)
                for name, (dtype, value) in self.shared.items()
            }
        state |= begun[key]
        self._state[p] = state
        return state

    def _is_there(self, p: Parameter, state: dict[str, Tensor]) -> bool:
        """Return whether the state of a parameter is where that is, in its dtype."""
        home, dtype = p.b.resource, p.dtype
        return all(
            t.b.resource is home and (t.dtype is dtype or name in self.shared)
            for name, t in state.items()
        )

    def _following(
        self, p: Parameter, state: dict[str, Tensor], followed: dict[Any, Tensor]
    ) -> dict[str, Tensor]:
        """Return a state on the device and in the dtype of its parameter, one count for many."""
        made: dict[str, Tensor] = {}
        for name, t in state.items():
            key = (id(t), id(p.b.resource))
            if t.b.resource is p.b.resource:
                followed.setdefault(key, t)
            elif key not in followed:
                followed[key] = moved(t, p.device)
            there = followed[key]
            made[name] = there if name in self.shared else there.to(p.dtype)
        return made

    def _update_together(
        self, ctx: Any, part: Part, grads: list[Tensor], lr: float, skip: Tensor | None
    ) -> None:
        params, names, counts = part.params, part.names, part.counts
        values = [ctx.make(p.v) for p in params]
        out = self.update(ctx, lr, values, grads, dict(part.columns), dict(counts), skip)
        n = len(params)
        wanted = n * (1 + len(names)) + len(counts)
        if len(out) != wanted:
            raise ArgumentError(
                f"{type(self).__name__}.update",
                "returns the new parameters, the states slot by slot, and the counts",
                got=f"{len(out)} tensors instead of {wanted}",
            )
        rebound: list[Tensor] = list(params)
        payloads = [t.v for t in out[:n]]
        for p, v in zip(params, payloads[:n], strict=True):
            if p._twin is not None:
                rebound.append(p._twin)
                payloads.append(v)
        for name in names:
            rebound += part.columns[name]
        payloads += [t.v for t in out[n:]]
        # A parameter without a gradient keeps the count that it shared; then this is a new object.
        fresh = {} if part.alone else {name: ctx.make(t.v) for name, t in counts.items()}
        rebound += (fresh or counts).values()
        ctx.resource.backend.rebinding_all(rebound, payloads)
        commit = map(_set_payload, rebound, payloads), map(dict.update, part.states, repeat(fresh))
        deque(chain(*commit), 0)

    # ---- captured steps -------------------------------------------------------------------------

    def step_tensors(self) -> list[Tensor]:
        """Return the tensors that a step reads and rebinds, each once, in a fixed order."""
        return self._parts.tensors([o._state for o in self._every()])

    def step_rates(self) -> list[float]:
        """Return the learning rates that a step takes when none is given."""
        return [owner.lr for owner in self._every()]

    def rates_of(self, lr: Rates) -> list[float]:
        """Return the learning rates of the groups in a step that is given a rate."""
        return [self._rate(group, lr) for group in self.groups]

    def step_settings(self) -> list[Any]:
        """Return what else a step depends on, one object each."""
        every = self._every()
        settings = [v for o in every for v in public(tuple(vars(o)))(vars(o))]
        # Whose state it has, too: that is the order of the tensors.
        return [*settings, *self.groups, *(p for o in every for p in o._state)]

    def _every(self) -> list[Optimizer]:
        if not self.groups:
            return [self]
        return [self, *(g.optimizer for g in self.groups if g.optimizer is not self)]

    # ---- state --------------------------------------------------------------------------------

    def state_dict(self, model: Module) -> dict[str, Tensor]:
        """Return the state by path and name, `fc.weight.exp_avg`: a snapshot.

        Args:
            model: whose parameters have state here.
        """
        out: dict[str, Tensor] = {}
        owned = dict(self._owned(model))
        followed: dict[Any, Tensor] = {}
        for path, p in model.named_parameters():
            owner = self._holder(owned.get(p))
            state = owner._state_of(p)
            if state and not owner._is_there(p, state):
                state = owner._following(p, state, followed)
            for name, t in state.items():
                out[f"{path}.{name}"] = snapshot(t)
        return out

    def load_state_dict(self, model: Module, state: Mapping[str, Tensor]) -> None:
        """Take a state that `state_dict` returned, in place of all there was for this model.

        Args:
            model: the same architecture, and groups added as they were.
            state: tensors by path and name.

        Raises:
            StoreError: names do not belong to this model and optimizer; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
            DTypeError: a dtype differs; nothing is changed then.
        """
        left = dict(state)
        made: dict[Parameter, dict[str, Tensor]] = {}
        owned = dict(self._owned(model))
        for path, p in model.named_parameters():
            owner = self._holder(owned.get(p))
            found = owner._restored(path, p, left)
            if found:
                made[p] = found
        if left:
            raise StoreError(
                type(self).__name__,
                "the state has names that this model lacks",
                got=sorted(left)[:5],
            )
        same: dict[Any, dict[str, Tensor]] = {}
        for p, group in owned.items():
            owner = self._holder(group)
            owner._settled(p)
            owner._state.pop(p, None)
            if p in made:
                # Equal counts are one tensor again, so one operation updates them all.
                counts = {n: made[p][n] for n in owner.shared}
                values = tuple(t.item() for t in counts.values())
                key = (id(owner), id(p.b.resource), values)
                owner._state[p] = made[p] | same.setdefault(key, counts)

    def _holder(self, group: Group | None) -> Optimizer:
        return self if group is None else group.optimizer

    def _restored(self, path: str, p: Parameter, left: dict[str, Tensor]) -> dict[str, Tensor]:
        """Take the state of a parameter out of `left`; empty if there is none."""
        shapes: dict[str, tuple[int, ...]] = self.slot_shapes(p) if p.is_initialized else {}
        wanted = {n: (p.dtype, s) for n, s in shapes.items()}
        wanted |= {n: (dtype, ()) for n, (dtype, _) in self.shared.items()}
        found = {n: left.pop(f"{path}.{n}") for n in wanted if f"{path}.{n}" in left}
        name = type(self).__name__
        if found and len(found) != len(wanted):
            raise StoreError(name, f"the state of {path} is incomplete", got=sorted(found))
        for n, t in found.items():
            dtype, shape = wanted[n]
            if t.shape != shape:
                raise ShapeError(
                    name, f"{path}.{n} has the shape that the parameter asks for",
                    got=f"{t.shape} for {shape}",
                )  # fmt: skip
            if t.dtype is not dtype:
                raise DTypeError(name, f"{path}.{n} is {dtype.name}", got=t.dtype.name)
        home = p.device
        return {n: moved(t, home) for n, t in found.items()}

    def rates(self) -> dict[str, float]:
        """Return the learning rates: the base under `""`, those of groups under their names.

        Example:
            >>> burn.optim.AdamW(lr=0.1).add_group("head", lr=0.01, name="head").rates()
            {'': 0.1, 'head': 0.01}
        """
        own = {g.name: g.optimizer.lr for g in self.groups if g.own_rate}
        return {"": self.lr, **own}

    def set_rates(self, rates: Mapping[str, float]) -> None:
        """Take rates that `rates` returned.

        Args:
            rates: by name of group.

        Raises:
            ArgumentError: a name is that of no group with a rate of its own.
        """
        unknown = sorted(set(rates) - set(self.rates()))
        if unknown:
            raise ArgumentError(f"{type(self).__name__}.set_rates", "no such group", got=unknown)
        for name, lr in rates.items():
            if name:
                next(g for g in self.groups if g.name == name).optimizer.lr = lr
            else:
                self.lr = lr
