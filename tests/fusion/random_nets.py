"""Random nets and training steps: recorded beside eager, bit for bit.

A seed stands for a net of layers of all kinds and what happens on its way: assignments, blocks
without gradients or in 16 bits, checkpointing, threads, reads, errors that are caught, gradients of
gradients, an optimizer. It takes a few steps, so that plans are made, used again and replayed; then
the batch has another extent. What the recorded run leaves has the bits of the eager one.

    python -m tests.fusion.random_nets --backend cpu --first 0 --count 1000
"""

from __future__ import annotations

import argparse
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

import burn
from burn import nn, optim
from tests.fusion.random_programs import Difference, _same
from tests.laws.layer_kinds import DTYPES, LAYERS, Dice, fitting, start
from tests.laws.random_layers import first_of

F = burn.functional
STEPS = 5
EVENTS = (
    "assign",
    "no_grad",
    "bfloat16",
    "float16",
    "checkpoint",
    "thread",
    "read",
    "error",
    "valid",
    "no_fusion",
    "flush",
    "keep",
    "detach",
    "rows",
)
OPTIMIZERS: tuple[Callable[[], Any], ...] = (
    lambda: optim.SGD(lr=0.01, momentum=0.9),
    lambda: optim.AdamW(lr=0.01),
    lambda: optim.RMSprop(lr=0.001),
    lambda: optim.Adagrad(lr=0.01),
)


class Part(NamedTuple):
    """A layer of a net, and what happens around it."""

    name: str
    settings: int
    event: str | None


class Net(nn.Module):
    """Layers that were made while the first input went through."""

    def __init__(self) -> None:
        self.layers: list[Any] = []


class _Run:
    """The steps of a seed on a device."""

    def __init__(self, seed: int, device: Any) -> None:
        self.seed, self.plain = seed, device
        self.device = device.autodiff()
        self.seen: list[Any] = []
        self.kept: list[tuple[Any, Any]] = []

    def look(self, x: Any) -> None:
        self.seen.append((x.dtype.name, x.detach().numpy().copy()))

    def go(self) -> _Run:
        dice = Dice(self.seed)
        self.plain.seed(self.seed)
        array, tokens = start(dice)
        dtype, length = dice.choice(DTYPES), dice.random.randrange(1, 7)
        second, penalty = dice.chance(0.25), dice.chance(0.4)
        optimizer = dice.choice(OPTIMIZERS)()
        chooser, net, parts = dice.random.randrange(1 << 30), Net(), []
        for step in range(STEPS):
            values = array if step < STEPS - 1 else np.concatenate([array, array])[: len(array) + 1]
            x = burn.tensor(values, device=self.device)
            if not tokens:
                x = burn.tensor(values + step, device=self.plain).to(dtype)
                x = burn.tensor(x, device=self.device).require_grad()
            given = x
            try:
                choices = Dice(chooser)
                for k in range(length):
                    if step == 0:
                        name = choices.choice(fitting(x.shape, tokens and k == 0))
                        event = choices.choice(EVENTS) if choices.chance(0.45) else None
                        parts.append(Part(name, choices.random.randrange(1 << 30), event))
                        settings = {"device": self.device, "dtype": dtype}
                        net.layers.append(
                            LAYERS[name].make(Dice(parts[k].settings), x.shape, settings)
                        )
                    x = self.around(net.layers[k], x, parts[k])
                    if prod(x.shape) > 3000 or len(x.shape) > 5 or not x.shape:
                        length = k + 1
                        break
                self.step(net, given, x, optimizer, second, penalty)
            except (burn.BurnError, IndexError) as error:
                self.seen.append(f"step {step}: {type(error).__name__}")
                if step == 0:
                    break
        for p in net.parameters():
            self.look(p)
        for b in net.state_dict().values():
            self.look(b)
        self.plain.sync()
        return self

    def around(self, layer: Any, x: Any, part: Part) -> Any:
        """Return the output of a layer, and do what happens around it."""
        event, call = part.event, lambda t: first_of(layer(t))
        if event == "assign" and x.dtype.is_float:
            made = x * 1
            made[..., :1] = 0.5
            x = made
        elif event == "rows" and x.dtype.is_float and x.shape and x.shape[0]:
            made = x * 1
            made[0] = made[-1] * 2
            x = made
        elif event == "no_grad":
            with burn.no_grad():
                self.look(call(x))
        elif event in ("bfloat16", "float16"):
            with burn.autocast(getattr(burn, event)):
                return call(x)
        elif event == "checkpoint":
            return burn.checkpoint(call, x)
        elif event == "thread":
            return self.threaded(call, x)
        elif event == "read":
            self.look(x)
        elif event == "flush":
            self.plain.flush()
        elif event == "no_fusion":
            with burn.no_fusion():
                return call(x)
        elif event == "error":
            try:
                half = call(x)
                self.look(
                    half.sum()
                    + burn.ones(7, 3, 5, device=self.device) @ burn.ones(2, 2, device=self.device)
                )
            except burn.BurnError as error:
                self.seen.append(type(error).__name__)
        elif event == "valid" and isinstance(layer, nn.Module):
            self.look(first_of(layer.valid()(x.detach())))
        elif event == "detach" and x.dtype.is_float:
            x = x + x.detach() * 0.5
        out = call(x)
        if event == "keep":
            kept = out.detach()
            self.kept.append((kept, kept.numpy().copy()))
        return out

    def threaded(self, call: Any, x: Any) -> Any:
        found: list[Any] = []

        def work() -> None:
            try:
                found.append(call(x))
            except (burn.BurnError, IndexError) as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if not found:
            raise AssertionError("the thread failed")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def step(
        self, net: Net, given: Any, out: Any, optimizer: Any, second: bool, penalty: bool
    ) -> None:
        """Take a training step with the output of a net."""
        self.look(out)
        loss = (out * out).mean() if penalty else (out * 0.3).sum()
        if self.seed % 4 == 0 and len(out.shape) > 1 and 0 not in out.shape:
            n, c, *rest = out.shape
            aims = burn.arange(n * prod(rest), device=self.plain).reshape(n, *rest) % c
            loss = F.cross_entropy(out * 0.3, aims, label_smoothing=0.1 * (self.seed % 8 == 0))
        if not loss.is_tracked():
            return
        grads = loss.backward(create_graph=second)
        wanted = [w for w in (given, *net.parameters()) if w.dtype.is_float]
        first = [g for w in wanted if (g := w.grad(grads)) is not None]
        for g in first:
            self.look(g)
        tracked = [g for g in first if g.is_tracked()] if second else []
        if tracked:
            total = sum(
                ((g * g).sum().to(burn.float32) for g in tracked),
                burn.zeros((), device=self.device),
            )
            if total.is_tracked():
                late = total.backward()
                for w in wanted:
                    g = w.grad(late)
                    if g is not None:
                        self.look(g)
                grads = late
        if any(True for _ in net.parameters()):
            optimizer.step(net, grads)


def check(seed: int, eager: Any, fused: Any, counts: Counter[str] | None = None) -> None:
    """Compare the runs of a seed.

    Raises:
        Difference: they differ, or a result changed after its run.
    """
    assert eager != fused, "one device under two names is compared with itself"
    expected = _Run(seed, eager).go()
    found = _Run(seed, fused).go()
    for at, (a, b) in enumerate(zip(found.seen, expected.seen, strict=False)):
        _same(a, b, f"observation {at} of {len(expected.seen)}")
    if len(found.seen) != len(expected.seen):
        raise Difference(f"{len(found.seen)} observations, expected {len(expected.seen)}")
    for x, copy in found.kept:
        _same((x.dtype.name, x.numpy()), (x.dtype.name, copy), "a result that was kept")
    if counts is not None:
        counts.update("refusals" if isinstance(s, str) else "values" for s in expected.seen)


def main() -> None:
    """Run many nets; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cpu", help="what eager- and fusion- are put before")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=80)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    eager, fused = (burn.device(f"{kind}-{args.backend}") for kind in ("eager", "fusion"))
    counts, wrong, begin, seed = Counter[str](), 0, time.monotonic(), args.first
    while seed < args.first + args.count and time.monotonic() - begin < args.seconds:
        try:
            check(seed, eager, fused, counts)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            wrong += 1
            last = traceback.format_exc().splitlines()[-6:]
            words = "" if isinstance(error, Difference) else f"\n    {last}"
            print(f"net {seed}: {type(error).__name__}: {error}{words}"[:900], flush=True)
        seed += 1
    print(
        f"{args.backend}: nets {args.first} to {seed - 1}, {counts['values']} values, "
        f"{counts['refusals']} refusals, {wrong} differ, {time.monotonic() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()
