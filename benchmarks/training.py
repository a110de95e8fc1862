"""What the learner costs over a bare loop with the same model, with metrics and a view.

    python benchmarks/training.py [--view dashboard] [--rounds 15] [--json FILE]

A step of the model takes 1 to 1.5 ms; the mark is 3 % with metrics and the dashboard on. The
dashboard needs a terminal. Bare loop and learner take turns, and of both the first
epoch, which warms up, is left out; the median of the rounds' ratios counts, for the machine's own
pace drifts by more than the mark from one round to the next.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from burn import Device, nn, optim
from burn.dataset import ArrayDataset, DataLoader
from burn.train import Accuracy, Learner, Observer, RunInfo, SupervisedTraining
from burn_train.views.dashboard import DashboardView

BATCH, WIDTH, STEPS, EPOCHS = 64, 384, 1500, 4


class Clock(Observer):
    """Note when the run begins and when each epoch's values are there."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def begin(self, info: RunInfo) -> None:
        """Start."""
        self.times.append(time.perf_counter())

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Add the end of an epoch."""
        self.times.append(time.perf_counter())


def model(device: Device) -> nn.Module:
    """Return a small perceptron whose step takes about 1 ms."""
    device.seed(1)
    return nn.Sequential(
        nn.Linear(64, WIDTH, device=device), nn.ReLU(), nn.Linear(WIDTH, WIDTH, device=device),
        nn.ReLU(), nn.Linear(WIDTH, 10, device=device),
    )  # fmt: skip


def loader(device: Device) -> DataLoader:
    """Return the batches both loops read."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((BATCH * STEPS, 64)).astype(np.float32)
    y = rng.integers(0, 10, BATCH * STEPS)
    return DataLoader(ArrayDataset(x, y), BATCH, device=device)


def bare(device: Device, batches: DataLoader) -> float:
    """Return the milliseconds per step of a loop written by hand, in its later epochs."""
    net, optimizer, loss_of = model(device), optim.AdamW(lr=1e-3), nn.CrossEntropyLoss()
    ends = []
    for _ in range(EPOCHS):
        for x, y in batches:
            optimizer.step(net, loss_of(net(x), y).backward())
        ends.append(time.perf_counter())
    return (ends[-1] - ends[0]) / (EPOCHS - 1) / STEPS * 1e3


def learned(device: Device, batches: DataLoader, view: str) -> tuple[float, float]:
    """Return the milliseconds per step of a learner: later epochs, and the first.

    The first pays for the imports and the opening of the screen, once in a training.
    """
    learner = Learner(model(device), optim.AdamW(lr=1e-3), nn.CrossEntropyLoss())
    clock = Clock()
    # Nobody browses at the end.
    shown = DashboardView(stay=0.0) if view == "dashboard" else view
    SupervisedTraining(batches, epochs=EPOCHS, metrics=[Accuracy], view=shown, loggers=[clock]).run(
        learner
    )
    first, later = (
        clock.times[1] - clock.times[0],
        (clock.times[-1] - clock.times[1]) / (EPOCHS - 1),
    )
    return later / STEPS * 1e3, first / STEPS * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--view", default="plain")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = Device.default().autodiff()
    batches = loader(device)
    bares, later, first = [], [], []
    for number in range(arguments.rounds):
        # Where the weights come to lie in memory decides about 2 % of a step, either way: many
        # rounds even that out, and none of the two is always the second.
        if number % 2 == 0:
            bares.append(bare(device, batches))
        steady, opening = learned(device, batches, arguments.view)
        later.append(steady)
        first.append(opening)
        if number % 2:
            bares.append(bare(device, batches))
    ratios = [own / loop for own, loop in zip(later, bares, strict=True)]
    result = {
        "view": arguments.view,
        "bare ms": statistics.median(bares),
        "learner ms": statistics.median(later),
        "learner ms, first epoch": statistics.median(first),
        "overhead": statistics.median(ratios) - 1,
        "overheads": [ratio - 1 for ratio in ratios],
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
