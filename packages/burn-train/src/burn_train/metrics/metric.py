"""What metrics share: a value over everything seen, a snapshot for display, saving.

A `SumMetric` keeps sums on the device: its update is recorded with the step and reads nothing. A
`HostMetric` gets arrays on the metrics' own thread, for what needs all predictions at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from burn_dispatch import to_device
from burn_std import StoreError, unwritten
from burn_std.dtypes import bool_, float32, float64, int64
from burn_tensor import Tensor, cat, stack, tensor

Array = np.ndarray[Any, Any]


class Metric:
    """Base of metrics.

    Attributes:
        name: column of the table.
        unit: of the value, or empty.
        higher_is_better: which of two values is the better one.
        on_host: `update` takes arrays, on another thread than the training's.
    """

    name: str = ""
    unit: str = ""
    higher_is_better: bool = False
    on_host: bool = False

    def reset(self) -> None:
        """Forget what was seen."""
        raise unwritten(self, "reset")

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch.

        Args:
            output: of the model.
            target: what it should be.
            loss: the mean over the batch, of rank 0.
        """
        raise unwritten(self, "update")

    def snapshot(self) -> Callable[[], float]:
        """Return a function that computes the value over what was seen so far, on any thread."""
        raise unwritten(self, "snapshot")

    def value(self) -> float:
        """Return the value over everything seen; NaN if that is nothing."""
        return self.snapshot()()

    def state_dict(self) -> dict[str, Tensor]:
        """Return what was seen, for a checkpoint inside an epoch."""
        raise unwritten(self, "state_dict")

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned.

        Args:
            state: tensors by name.

        Raises:
            StoreError: there is no count in it.
        """
        raise unwritten(self, "load_state_dict")

    def fresh(self) -> Self:
        """Return a metric of the same settings that has seen nothing."""
        from copy import copy

        made = copy(self)
        made.reset()
        return made


# Single values that wait for one another before they are added to a sum.
_TOGETHER = 32


class SumMetric(Metric):
    """Sums on the device; a subclass adds to them and says what they come to.

    Attributes:
        count: samples seen, or positions where those are what counts.
    """

    # Sums that were made before anything was added, see `step_tensors`: context, dtype and shape.
    _forms: Mapping[str, tuple[Any, Any, tuple[int, ...]]] = {}

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._forms = self.forms()
        self._sums: dict[str, Tensor] = {}
        self._waiting: dict[str, list[Tensor]] = {}
        self._empty: set[str] = set()
        self.count = 0

    def add(self, count: int, **totals: Tensor) -> None:
        """Add to the sums; nothing is read.

        Args:
            count: samples in the batch.
            **totals: by name: floats are summed in float64, integers in int64. Of bools of rank 1
                those that are true are counted.
        """
        self.count += count
        for name, total in totals.items():
            plain = total if total.node is None else total.detach()
            waiting = self._waiting.get(name)
            if waiting is None:
                waiting = self._waiting[name] = []
            waiting.append(plain)
            # A program that is recorded has to be the same at each step; elsewhere every
            # operation costs its time, so that several values go together.
            counted = plain.dtype is bool_ and len(plain.shape) == 1
            alone = plain.shape and not counted
            if len(waiting) == _TOGETHER or alone or plain.b.resource.backend.records:
                self._gather(name)

    def sums(self) -> dict[str, Tensor]:
        """Return the sums by name, with everything that was added."""
        for name, waiting in self._waiting.items():
            if waiting:
                self._gather(name)
        return dict(self._sums)

    def _gather(self, name: str) -> None:
        """Add what waits to a sum, in the order it came, so that it rounds as one by one."""
        waiting, self._waiting[name] = self._waiting[name], []
        if waiting[0].dtype is bool_ and len(waiting[0].shape) == 1:
            # Whole numbers: one count of all is the sum of the counts.
            home = waiting[0].b.resource
            if len(waiting) > 1 and all(t.b.resource is home for t in waiting):
                waiting = [cat(waiting).count_nonzero()]
            else:
                waiting = [t.count_nonzero() for t in waiting]
        last = waiting[-1]
        have: Any = self._sums.get(name)
        if have is None or (name in self._empty and have.shape != last.shape):
            # Made at once: the first batch records the same program as the others.
            wide = float64 if last.dtype.is_float else int64
            have = last.b.resource.plain_context().at_once("full", wide, last.shape, 0)
        self._empty.discard(name)
        home = last.b.resource
        if any(t.b.resource is not home for t in (have, *waiting)):
            device = last.device.without_autodiff()
            moved: list[Any] = [to_device(t, device) for t in (have, *waiting)]
            have, waiting = moved[0], moved[1:]
        if len(waiting) == 1:
            # Cast first: a sum of two dtypes takes the long way through promotion.
            plain: Any = waiting[0]
            self._sums[name] = have + plain.b.cast(plain, have.dtype)
        else:
            together = cat([have.reshape(1), stack(waiting).to(have.dtype)])
            self._sums[name] = together.cumsum(0)[-1]

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the value that sums come to.

        Args:
            sums: by name, as arrays.
            count: samples seen, at least one.
        """
        raise unwritten(self, "result")

    def snapshot(self) -> Callable[[], float]:
        """Return a function that computes the value over what was seen so far, on any thread."""
        sums, count = _values(self.sums()), self.count

        def value() -> float:
            if not count:
                return float("nan")
            with np.errstate(all="ignore"):
                return float(self.result({k: t.numpy() for k, t in sums.items()}, count))

        return value

    def state_dict(self) -> dict[str, Tensor]:
        """Return sums and count."""
        return {"count": tensor(self.count), **_values(self.sums())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned."""
        self.count = _count(self.name, state)
        self._waiting, self._empty = {}, set()
        self._sums = {k: t.detach() for k, t in state.items() if k != "count"}

    # ---- captured steps -------------------------------------------------------------------------

    def forms(self) -> dict[str, tuple[Any, Any, tuple[int, ...]]]:
        """Return what the sums are like: context, dtype and shape by name."""
        held: dict[str, Tensor] = getattr(self, "_sums", {})
        return {k: (t.b, t.dtype, t.shape) for k, t in held.items()} or dict(self._forms)

    def begin_like(self, other: SumMetric) -> None:
        """Let the next captured step add to sums like those of another metric of this kind.

        Args:
            other: what a step was captured with.
        """
        self._forms = other.forms()

    def step_tensors(self) -> list[Tensor]:
        """Return the sums, which a step changes, for `burn.capture`; zeros after a `reset`."""
        sums = self.sums()
        if not sums:
            for name, (ctx, dtype, shape) in self._forms.items():
                self._sums[name] = ctx.at_once("full", dtype, shape, 0)
                self._empty.add(name)
            sums = self._sums
        return [*sums.values()]

    def step_rates(self) -> list[float]:
        """Return the numbers that a step takes from it: none."""
        return []

    def step_settings(self) -> list[Any]:
        """Return what else a step depends on."""
        own = ("count", "_sums", "_waiting", "_empty", "_forms")
        return [type(self), *(v for k, v in vars(self).items() if k not in own)]

    @property
    def step_count(self) -> int:
        """How many samples there were; a captured step counts on without `update`."""
        return self.count

    @step_count.setter
    def step_count(self, count: int) -> None:
        self.count = count
        self._empty.clear()

    def mark(self) -> Callable[[], None]:
        """Return a function that takes back all updates from here on."""
        held = {k: v.copy() if isinstance(v, (dict, set)) else v for k, v in vars(self).items()}
        # The lists themselves are added to.
        held["_waiting"] = {name: [*waiting] for name, waiting in self._waiting.items()}

        def undo() -> None:
            vars(self).clear()
            vars(self).update(held)

        return undo


class HostMetric(Metric):
    """Arrays gathered on the metrics' thread; a subclass says what they come to.

    Attributes:
        count: samples seen.
    """

    on_host = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._parts: dict[str, list[Array]] = {}
        self.count = 0

    def collect(self, count: int, **arrays: Any) -> None:
        """Append arrays along their first dim.

        Args:
            count: samples in the batch.
            **arrays: by name; of one shape but for the first dim.
        """
        for name, a in arrays.items():
            self._parts.setdefault(name, []).append(np.atleast_1d(np.asarray(a)))
        self.count += count

    def result(self, seen: dict[str, Array]) -> float:
        """Return the value that the gathered arrays come to.

        Args:
            seen: by name.
        """
        raise unwritten(self, "result")

    def _joined(self) -> dict[str, Array]:
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}

    def snapshot(self) -> Callable[[], float]:
        """Return a function that computes the value over what was seen so far, on any thread."""
        parts, count = {k: list(p) for k, p in self._parts.items()}, self.count

        def value() -> float:
            if not count:
                return float("nan")
            with np.errstate(all="ignore"):
                return float(self.result({k: np.concatenate(p) for k, p in parts.items()}))

        return value

    def state_dict(self) -> dict[str, Tensor]:
        """Return arrays and count."""
        return {"count": tensor(self.count), **{k: tensor(a) for k, a in self._joined().items()}}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned."""
        self.count = _count(self.name, state)
        self._parts = {k: [np.array(t.numpy())] for k, t in state.items() if k != "count"}


class LossMetric(SumMetric):
    """The mean loss, weighted by samples, so a smaller last batch counts as what it is.

    Example:
        >>> m = LossMetric()
        >>> m.update(burn.zeros(3, 2), burn.zeros(3), burn.tensor(1.0))
        >>> m.update(burn.zeros(1, 2), burn.zeros(1), burn.tensor(5.0))
        >>> m.value()
        2.0
    """

    name = "loss"

    def reset(self) -> None:
        """Forget what was seen."""
        super().reset()
        self._size = 0  # samples of each of the last batches, whose losses are summed as `run`

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        size = batch_size(output, target)
        if not size:  # its loss is a mean of nothing
            return
        if loss.b.resource.backend.records:
            # One program for batches of all sizes.
            self.add(size, loss=wide(loss.detach()) * size)
            return
        if size != self._size:
            self._close()
            self._size = size
        self.add(size, run=loss)

    def _close(self) -> None:
        """Weigh the batches of one size, together: that is an operation less for every batch."""
        run = self.sums().get("run")
        if run is not None:
            del self._sums["run"]
            self.add(0, loss=run * self._size)

    def snapshot(self) -> Callable[[], float]:
        """Return a function that computes the value over what was seen so far, on any thread."""
        sums, count, size = _values(self.sums()), self.count, self._size

        def value() -> float:
            if not count:
                return float("nan")
            read = {name: float(total.item()) for name, total in sums.items()}
            return (read.get("loss", 0.0) + read.get("run", 0.0) * size) / count

        return value

    def state_dict(self) -> dict[str, Tensor]:
        """Return sum and count."""
        self._close()
        self._size = 0
        return super().state_dict()


def _values(sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return sums as they are now: a captured step gives the tensors themselves other values."""
    return {name: t.detach() for name, t in sums.items()}


def wide(x: Tensor) -> Tensor:
    """Return a 16-bit float as float32, in which sums do not overflow; others as they are.

    Args:
        x: any tensor.
    """
    return x.to(float32) if x.dtype.is_float and x.dtype.bits == 16 else x


def batch_size(*values: Any) -> int:
    """Return the first dim of the first value that has one.

    Args:
        *values: tensors, arrays, lists, or tuples and dicts of them.
    """
    for value in values:
        if isinstance(value, dict):
            found = batch_size(*value.values())
        elif isinstance(value, tuple):
            found = batch_size(*value)
        elif isinstance(value, list):
            found = len(value)
        else:
            shape = getattr(value, "shape", ())
            found = int(shape[0]) if shape else 0
        if found:
            return found
    return 1 if all(getattr(v, "shape", None) == () for v in values) else 0


def is_empty(target: Any) -> bool:
    """Return whether there is nothing in a batch; a metric does not hear of it.

    Args:
        target: a tensor, an array or a list.
    """
    shape = getattr(target, "shape", None)
    return bool(shape) and shape[0] == 0 if shape is not None else len(target) == 0


def _count(name: str, state: Mapping[str, Tensor]) -> int:
    if "count" not in state:
        raise StoreError(name, "the state of a metric has a count", got=sorted(state))
    return int(state["count"].item())
