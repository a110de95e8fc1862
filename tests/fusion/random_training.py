"""Random training steps: captured beside written out, with changes between the steps.

A seed stands for a model, an optimizer, a schedule, what is done to the gradients, and events
between steps: settings and weights that change, snapshots that are taken, draws, reads. Both runs
have the same losses, states, positions and draws, bit for bit, and no snapshot changes afterwards.

    python -m tests.fusion.random_training --device fusion-cpu --first 0 --count 100
"""

from __future__ import annotations

import argparse
import random
import re
import time
import traceback
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np

import burn
from burn import nn, optim
from tests.fusion.random_programs import Difference, bits

F = burn.functional
WIDTH, CLASSES = 6, 3
OPTIMIZERS = (
    lambda: optim.SGD(lr=0.05), lambda: optim.SGD(lr=0.05, momentum=0.9, nesterov=True),
    lambda: optim.Adam(lr=0.01, amsgrad=True), lambda: optim.AdamW(lr=0.01),
    lambda: optim.Adagrad(lr=0.01, lr_decay=0.1), lambda: optim.Adadelta(lr=0.5),
    lambda: optim.Adafactor(lr=0.01), lambda: optim.Adamax(lr=0.01), lambda: optim.Adan(lr=0.01),
    lambda: optim.ASGD(lr=0.01), lambda: optim.LAMB(lr=0.01), lambda: optim.Lion(lr=0.001),
    lambda: optim.NAdam(lr=0.01), lambda: optim.RAdam(lr=0.01), lambda: optim.RMSprop(lr=0.01),
    lambda: optim.AdamW(lr=0.01).add_group("0.", weight_decay=0.0, lr=0.02),
    lambda: optim.Adan(lr=0.01, weight_decay=0.1).add_group(
        re.compile("bias"), optim.Lion(lr=0.001, weight_decay=0.2), name="bias"
    ),
    lambda: optim.Lion(lr=0.001, weight_decay=0.1).add_group(
        lambda path, p: len(p.shape) == 2, optim.Muon(lr=0.01), name="matrices"
    ),
)  # fmt: skip
SCHEDULES = (
    None, lambda: optim.lr_scheduler.ExponentialLR(0.05, gamma=0.97),
    lambda: optim.lr_scheduler.StepLR(0.05, step_size=7),
    lambda: optim.lr_scheduler.CosineAnnealingLR(0.05, T_max=20),
    lambda: optim.lr_scheduler.WarmupLR(0.05, 9),
    lambda: optim.lr_scheduler.CyclicLR(0.05, 0.01, 0.1, step_size_up=5),
    lambda: optim.lr_scheduler.OneCycleLR(0.05, 0.1, total_steps=200),
    lambda: optim.lr_scheduler.LambdaLR(0.05, lambda k: 1.0 / (1 + k // 4)),
    lambda: optim.lr_scheduler.PolynomialLR(0.05, total_iters=30),
    lambda: optim.lr_scheduler.GroupLR(
        optim.lr_scheduler.ExponentialLR(0.05, gamma=0.97),
        bias=optim.lr_scheduler.StepLR(0.05, step_size=7),
        matrices=optim.lr_scheduler.WarmupLR(0.05, 9),
    ),
)  # fmt: skip
EVENTS = (
    "rate", "decay", "load", "replace", "dropout", "snapshot", "snapshot", "draw", "read", "flush",
    "shape", "turned", "same", "infinite", "two steps", "freeze", "valid", "states", "cleanup",
    "nested", "masked", "broken", "unfreeze",
)  # fmt: skip


class Net(nn.Module):
    """A few random layers; what it reads of itself may be changed."""

    def __init__(self, dice: random.Random, device: Any) -> None:
        super().__init__()
        on = {"device": device}
        self.scale = 1.0
        self.box = {"a": [SimpleNamespace(factor=1.0)]}
        self.mask = burn.ones(CLASSES, device=device)
        self.tied = dice.random() < 0.3
        self.drop = nn.Dropout(dice.choice([0.1, 0.5]))
        self.parts = []
        wide = WIDTH
        for _ in range(dice.randint(1, 3)):
            width = dice.choice([4, 8, 16])
            self.parts.append(nn.Linear(wide, width, bias=dice.random() < 0.7, **on))
            kind = dice.choice(["batch", "layer", "rms", "none", "none"])
            if kind == "batch":
                self.parts.append(nn.BatchNorm1d(width, **on))
            elif kind == "layer":
                self.parts.append(nn.LayerNorm(width, **on))
            elif kind == "rms":
                self.parts.append(nn.RMSNorm(width, **on))
            self.parts.append(dice.choice([nn.ReLU, nn.GELU, nn.Tanh, nn.SiLU])())
            if dice.random() < 0.5:
                self.parts.append(self.drop)
            wide = width
        if dice.random() < 0.3:
            self.parts[:0] = [
                nn.Unflatten(1, (1, WIDTH)), nn.Conv1d(1, 2, 3, padding=1, **on), nn.Flatten(),
                nn.Linear(2 * WIDTH, WIDTH, **on),
            ]  # fmt: skip
        self.head = nn.Linear(wide, CLASSES, **on)

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        out = self.head(x)
        if self.tied:  # the head's weights once more
            out = out + (x @ self.head.weight.mT) * 0.5
        return out * self.mask * (self.scale * self.box["a"][0].factor)


class Training:
    """One training of a seed."""

    def __init__(self, seed: int, device: Any, captured: bool) -> None:
        self.dice = random.Random(seed)
        dice, self.plain = self.dice, device
        self.device = device.autodiff()
        self.device.seed(seed)
        burn.manual_seed(seed)
        self.model = Net(dice, self.device)
        self.optimizer = dice.choice(OPTIMIZERS)()
        made = dice.choice(SCHEDULES)
        self.schedule = made() if made else None
        if isinstance(self.schedule, optim.lr_scheduler.GroupLR):
            known = {"", *(g.name for g in self.optimizer.groups)}
            kept = {k: v for k, v in self.schedule.schedulers.items() if k in known}
            self.schedule.schedulers = kept
        self.clip = dice.choice(["", "norm", "value", "each"])
        self.scaler = optim.GradScaler(8.0, growth_interval=4, device=device)
        self.scaled = dice.random() < 0.3
        self.ema = optim.EMA(self.model, 0.7, warmup=dice.random() < 0.5)
        self.averaged = dice.random() < 0.4
        self.halves = dice.random() < 0.25
        self.autocast = dice.random() < 0.15
        state: list[Any] = [self.model, {"o": self.optimizer}]
        state += [x for x, on in ((self.schedule, self.schedule), (self.scaler, self.scaled),
                                  (self.ema, self.averaged)) if on]  # fmt: skip
        self.step: Any = burn.capture(self.train, state=state) if captured else self.train
        self.kept: list[tuple[Any, Any]] = []
        self.seen: list[Any] = []
        self.data = np.random.default_rng(seed)

    def gradients(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        out = self.model(x)
        loss = F.cross_entropy(out, y)
        grads = (self.scaler.scale(loss) if self.scaled else loss).backward()
        return out, loss, grads

    def train(self, x: Any, y: Any) -> Any:
        with burn.autocast(burn.bfloat16 if self.autocast else None):
            if self.halves:
                sums = optim.GradientAccumulator()
                for part in (slice(None, None, 2), slice(1, None, 2)):
                    out, loss, grads = self.gradients(x[part], y[part])
                    sums.add(self.model, grads)
                grads = sums.take()
            else:
                out, loss, grads = self.gradients(x, y)
        if self.scaled and self.clip:
            self.scaler.unscale(self.model, grads)
        norm = None
        if self.clip == "norm":
            norm = optim.clip_grad_norm(self.model, grads, 0.5)
        elif self.clip == "value":
            optim.clip_grad_value(self.model, grads, 0.1)
        elif self.clip == "each":
            optim.clip_grad_norm_each(self.model, grads, 0.3)
        lr = {"lr": self.schedule.lr} if self.schedule is not None else {}
        if self.scaled:
            self.scaler.step(self.optimizer, self.model, grads, flush=False, **lr)
        else:
            self.optimizer.step(self.model, grads, flush=False, **lr)
        if self.averaged:
            self.ema.update(self.model)
        if self.schedule is not None:
            self.schedule.step()
        return {"loss": loss, "found": (out.argmax(-1), [norm, None, "name"]), "x": x}

    def go(self, steps: int) -> Training:
        """Make steps, with events between them."""
        rows = 8
        for _ in range(steps):
            quiet = self.dice.random() < 0.7
            event = "" if quiet else self.dice.choice(EVENTS)
            count = 6 if event == "shape" else rows
            x = self.data.standard_normal((count, WIDTH)).astype(np.float32)
            y = self.data.integers(0, CLASSES, count)
            if event == "infinite" and self.scaled:
                x[0, 0] = np.inf
            a = burn.tensor(x, device=self.plain)
            if event == "turned":
                a = burn.tensor(np.ascontiguousarray(x.T), device=self.plain).T
            if event in dir(self):
                getattr(self, event)()
            b = burn.tensor(y, device=self.plain)
            out = self.step(a, b)
            self.look(out["loss"])
            self.look(out["found"][0])
            if out["found"][1][0] is not None:
                self.look(out["found"][1][0])
            if event == "two steps":
                self.look(self.step(out["x"], b)["loss"])
            if event == "snapshot":
                self.snapshot()
        for t in self.tensors():
            self.look(t)
        self.look(burn.rand(3, device=self.plain))
        position = self.schedule.position if self.schedule is not None else 0
        self.seen.append((position, self.ema.updates))
        return self

    def look(self, x: Any) -> None:
        self.seen.append((x.dtype.name, x.numpy().copy()))

    def tensors(self) -> list[Any]:
        found = [*self.model.state_dict().values(), *self.optimizer.step_tensors()]
        return [*found, *self.scaler.step_tensors(), *self.ema.step_tensors()]

    # ---- events -------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Take all kinds of snapshots, with copies of what they are."""
        for t in [*self.tensors(), *self.model.parameters()]:
            flat = t.detach()
            views = [flat, flat.clone(), flat.reshape(-1)[:1], flat.reshape(-1).flip(0)]
            made = [*views, flat.numpy()]
            if flat.dtype is burn.float32:
                made.append(np.from_dlpack(flat.to_device("flex:5"), copy=False))
            self.kept += [
                (v, np.array(v if isinstance(v, np.ndarray) else v.numpy())) for v in made
            ]

    def rate(self) -> None:
        self.optimizer.lr *= 0.9

    def decay(self) -> None:
        if hasattr(self.optimizer, "weight_decay"):
            self.optimizer.weight_decay = self.dice.choice([0.0, 0.1, 0.01])

    def load(self) -> None:
        self.model.load_state_dict({k: v * 0.5 for k, v in self.model.state_dict().items()})

    def replace(self) -> None:
        self.model.head.weight.set(self.model.head.weight.detach() * 0.25)

    def dropout(self) -> None:
        self.model.scale = self.dice.choice([1.0, 0.5])
        self.model.drop.p = self.dice.choice([0.2, 0.4])

    def nested(self) -> None:
        self.model.box["a"][0].factor = self.dice.choice([1.0, 0.75])

    def masked(self) -> None:
        self.model.mask[self.dice.randrange(CLASSES)] = self.dice.choice([1.0, 0.5])

    def freeze(self) -> None:
        self.model.freeze("head.weight")

    def unfreeze(self) -> None:
        self.model.unfreeze()

    def broken(self) -> None:
        """Break a step off in its middle."""
        x = burn.ones(8, WIDTH, device=self.plain)
        try:
            self.step(x, burn.tensor([0, 1, 2], device=self.plain))
        except burn.ShapeError as error:
            self.seen.append((error.op, 0))
        else:
            raise AssertionError("a step of eight rows and three labels")

    def draw(self) -> None:
        self.look(burn.rand(3, device=self.plain))

    def read(self) -> None:
        self.look(self.model.head.weight.detach())

    def flush(self) -> None:
        self.plain.flush()

    def valid(self) -> None:
        self.look(self.model.valid()(burn.ones(2, WIDTH, device=self.plain)))

    def states(self) -> None:
        """Put another state into the optimizer."""
        state = self.optimizer.state_dict(self.model)
        if state:
            self.optimizer.load_state_dict(self.model, {k: v * 1 for k, v in state.items()})

    def cleanup(self) -> None:
        self.plain.memory_cleanup()


def check(seed: int, device: Any, steps: int = 100) -> int:
    """Compare both runs of a seed; return how many steps were replays.

    Raises:
        Difference: they differ, or a snapshot changed.
    """
    expected = Training(seed, device, False).go(steps)
    found = Training(seed, device, True).go(steps)
    for at, (a, b) in enumerate(zip(found.seen, expected.seen, strict=True)):
        if isinstance(a[1], int):
            if a != b:
                raise Difference(f"counts: {a}, expected {b}")
        elif (a[0], a[1].shape, bits(a[1])) != (b[0], b[1].shape, bits(b[1])):
            raise Difference(f"observation {at} of {len(found.seen)}: {a}, expected {b}")
    for run in (found, expected):
        for x, copy in run.kept:
            if bits(np.asarray(x if isinstance(x, np.ndarray) else x.numpy())) != bits(copy):
                raise Difference("a snapshot changed")
    replays: int = found.step.replays
    return replays


def main() -> None:
    """Check many seeds; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="fusion-cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    device, start, replays, wrong, seed = (
        burn.device(args.device),
        time.monotonic(),
        0,
        0,
        args.first,
    )
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        try:
            replays += check(seed, device, args.steps)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            wrong += 1
            last = traceback.format_exc().splitlines()[-4:]
            print(f"training {seed}: {type(error).__name__}: {error}\n    {last}"[:900], flush=True)
        seed += 1
    print(f"{args.device}: trainings {args.first} to {seed - 1}, {replays} replays, {wrong} differ")


if __name__ == "__main__":
    main()
