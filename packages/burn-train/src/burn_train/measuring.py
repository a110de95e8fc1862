"""The metrics of one split while it runs: device sums in the step, the rest on the worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from burn_std import ArgumentError
from burn_tensor import Tensor
from burn_train.learner import Learner, Step
from burn_train.metrics.gauges import Gauge
from burn_train.metrics.metric import LossMetric, Metric
from burn_train.observer import Column
from burn_train.worker import Worker, on_host

MetricLike = Metric | Gauge | type[Metric] | type[Gauge]


class RunState(NamedTuple):
    """What gauges read.

    Attributes:
        steps: of the optimizer, so far.
        seconds: of training so far.
        rates: learning rates by group.
        devices: of the model.
    """

    steps: int
    seconds: float
    rates: Mapping[str, float]
    devices: Sequence[Any]


class Metrics:
    """The prototypes of metrics and gauges, of which every split gets fresh ones.

    Args:
        given: classes or instances; the loss is there always.

    Raises:
        ArgumentError: something else was given, or two have one name.
    """

    def __init__(self, given: Iterable[MetricLike] = ()) -> None:
        made = [g() if isinstance(g, type) else g for g in given]
        self.metrics: list[Metric] = [LossMetric()]
        self.gauges: list[Gauge] = []
        for one in made:
            if isinstance(one, Gauge):
                self.gauges.append(one)
            elif isinstance(one, Metric):
                self.metrics.append(one)
            else:
                raise ArgumentError(
                    "metrics", "are classes or instances of Metric or Gauge", got=repr(one),
                    remedy=_meant(one),
                )  # fmt: skip
        names = [m.name for m in self.metrics] + [g.name for g in self.gauges]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ArgumentError("metrics", "have names of their own", got=twice)

    def columns(self) -> list[Column]:
        """Return how the table shows them."""
        found = [Column(m.name, m.unit, m.higher_is_better) for m in self.metrics]
        return [*found, *(Column(g.name, g.unit, None) for g in self.gauges)]

    def split(self, gauges: bool) -> Split:
        """Return fresh ones for a split.

        Args:
            gauges: with those of the run.
        """
        return Split([m.fresh() for m in self.metrics], self.gauges if gauges else [])


class Split:
    """The metrics of one pass over one split.

    Args:
        metrics: fresh.
        gauges: of the run.
    """

    def __init__(self, metrics: Sequence[Metric], gauges: Sequence[Gauge]) -> None:
        self.on_device = [m for m in metrics if not m.on_host]
        self.on_host = [m for m in metrics if m.on_host]
        self._metrics = metrics
        self._gauges = gauges

    @property
    def count(self) -> int:
        """Samples seen."""
        return next((m.count for m in self._metrics if isinstance(m, LossMetric)), 0)

    @property
    def keep(self) -> bool:
        """Whether what batches come to is needed after the step."""
        return bool(self.on_host)

    def hand_over(self, step: Step | None, worker: Worker) -> None:
        """Give what a batch came to to the metrics that want arrays.

        Args:
            step: its values are computed already.
            worker: reads them.
        """
        if step is None:
            return

        def job() -> None:
            output, target, loss = (on_host(v) for v in step)
            for m in self.on_host:
                m.update(output, target, loss)

        worker.put(job)

    def reading(self, state: RunState) -> Callable[[], dict[str, float]]:
        """Return a function that computes all values so far, for the worker."""
        sums = [(m.name, m.snapshot()) for m in self.on_device]

        def values() -> dict[str, float]:
            out = {name: value() for name, value in sums}
            out |= {m.name: m.value() for m in self.on_host}
            out |= {g.name: g.read(state) for g in self._gauges}
            order = [m.name for m in self._metrics] + [g.name for g in self._gauges]
            return {name: out[name] for name in order}

        return values

    def state_dict(self) -> dict[str, Tensor]:
        """Return what was seen, for a checkpoint inside an epoch."""
        return {f"{m.name}/{name}": t for m in self._metrics for name, t in m.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned; a metric that was not there begins anew."""
        for m in self._metrics:
            mine = {k[len(m.name) + 1 :]: t for k, t in state.items() if k.startswith(f"{m.name}/")}
            if mine:
                m.load_state_dict(mine)


def _meant(given: Any) -> str | None:
    """Return what to pass in the place of a metric's name."""
    from burn_train import metrics

    names = {name.lower(): name for name in metrics.__all__}
    plain = str(given).lower().replace(" ", "").replace("_", "").replace("-", "")
    found = get_close_matches(plain, names, 1) if isinstance(given, str) else []
    return f"Pass burn.train.{names[found[0]]}." if found else None


def run_state(learner: Learner, seconds: float) -> RunState:
    """Return what gauges read.

    Args:
        learner: is trained.
        seconds: of training so far.
    """
    return RunState(learner.steps, seconds, learner.rates(), learner.devices())


class Pace:
    """Says when it is time again.

    Args:
        seconds: between two times.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        """Return whether it is time."""
        now = time.perf_counter()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


def with_last(batches: Iterable[Any], known: int) -> Iterator[tuple[Any, bool]]:
    """Yield every batch and whether it is the last.

    Args:
        batches: of an epoch.
        known: how many there are; 0 if nobody knows, and then one is fetched ahead.
    """
    if known:
        for k, batch in enumerate(batches, 1):
            yield batch, k == known
        return
    held: list[Any] = []
    for batch in batches:
        if held:
            yield held.pop(), False
        held.append(batch)
    if held:
        yield held.pop(), True


def steps_of(loader: Any) -> int:
    """Return the number of batches of an epoch, 0 if nobody knows."""
    try:
        return len(loader)
    except TypeError:
        return 0
