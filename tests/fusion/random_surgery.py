"""Random surgery on a model between its captured steps: captured beside written out, bit for bit.

A seed stands for a model, an optimizer and what is done to them between the steps: layers swapped,
added and taken out, weights tied and untied, adapters, normed weights, other dtypes, records,
masks, scopes around a step, copies of the optimizer, threads that read meanwhile. Views that are
held keep their values.

    python -m tests.fusion.random_surgery --device cpu --first 0 --count 100
"""

from __future__ import annotations

import argparse
import copy
import random
import threading
import time
import traceback
import warnings
from typing import Any

import numpy as np

import burn
from burn import nn, optim
from tests.fusion.random_programs import Difference, bits

F = burn.functional
WIDTH, CLASSES = 6, 3
OPTIMIZERS = (
    lambda: optim.SGD(lr=0.05, momentum=0.9), lambda: optim.Adam(lr=0.01),
    lambda: optim.AdamW(lr=0.01).add_group("head", lr=0.02, weight_decay=0.0),
    lambda: optim.RMSprop(lr=0.01, momentum=0.5), lambda: optim.Lion(lr=0.001),
)  # fmt: skip


class Net(nn.Module):
    """Layers of one width, so that any may stand in the place of any other."""

    def __init__(self, dice: random.Random, device: Any) -> None:
        self.parts: list[Any] = [layer(dice, device) for _ in range(dice.randint(1, 3))]
        self.named = {"last": nn.Identity(), 3: nn.Linear(WIDTH, WIDTH, device=device)}
        self.head = nn.Linear(WIDTH, CLASSES, device=device)
        self.extra: Any = None
        self.note: Any = 1.0

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        x = self.named["last"](self.named[3](x).tanh())
        out = self.head(x)
        return out if self.extra is None else out + self.extra(x)


def layer(dice: random.Random, device: Any) -> Any:
    """Return a layer that keeps the width."""
    on = {"device": device}
    kind = dice.randrange(7)
    made: list[Any] = [
        nn.Linear(WIDTH, WIDTH, **on),
        nn.Linear(WIDTH, WIDTH, bias=False, **on),
        nn.Sequential(nn.Linear(WIDTH, 4, **on), nn.GELU(), nn.Linear(4, WIDTH, **on)),
        nn.BatchNorm1d(WIDTH, momentum=dice.choice([0.1, None]), **on),
        nn.LayerNorm(WIDTH, **on),
        nn.Sequential(nn.ReLU(), nn.Dropout(0.2)),
        nn.PReLU(**on),
    ]
    return made[kind]


class Surgery:
    """One training of a seed."""

    def __init__(self, seed: int, device: Any, captured: bool) -> None:
        self.dice = random.Random(seed)
        self.plain, self.device = device, device.autodiff()
        self.device.seed(seed)
        burn.manual_seed(seed)
        self.model = Net(self.dice, self.device)
        self.optimizer = self.dice.choice(OPTIMIZERS)()
        self.captured = captured
        self.replays = 0
        self.step: Any = None
        self.kept: list[tuple[str, Any, Any]] = []
        self.seen: list[Any] = []
        self.data = np.random.default_rng(seed)
        self.scope: Any = None
        self.taken()

    def taken(self) -> None:
        """Make the step anew, as after another object stands in the state."""
        if self.captured:
            self.replays += 0 if self.step is None else self.step.replays
            self.step = burn.capture(self.train, state=(self.model, self.optimizer))
        else:
            self.step = self.train

    def train(self, x: Any, y: Any) -> Any:
        out = self.model(x)
        loss = F.cross_entropy(out.to(burn.float32), y)
        self.optimizer.step(self.model, loss.backward(), flush=False)
        return loss, out

    def go(self, steps: int) -> Surgery:
        """Make steps, with events between them."""
        events = [n[3:] for n in dir(self) if n.startswith("do_")]
        for _ in range(steps):
            if self.dice.random() < 0.35:
                event = self.dice.choice(events)
                self.seen.append(event)
                getattr(self, f"do_{event}")()
            x = self.data.standard_normal((8, WIDTH)).astype(np.float32)
            y = self.data.integers(0, CLASSES, 8)
            a, b = burn.tensor(x, device=self.plain), burn.tensor(y, device=self.plain)
            with burn.autocast(self.scope):
                loss, out = self.step(a, b)
            self.look(loss)
            self.look(out)
        for t in (*self.model.state_dict().values(), *self.optimizer.step_tensors()):
            self.look(t)
        self.seen += list(self.model.state_dict())
        self.replays += self.step.replays if self.captured else 0
        return self

    def look(self, x: Any) -> None:
        self.seen.append((x.dtype.name, x.numpy().copy()))

    def keep(self, what: str, x: Any) -> None:
        self.kept.append((what, x, x.numpy().copy()))

    # ---- what is done -------------------------------------------------------------------------

    def do_swap(self) -> None:
        self.model.parts[self.dice.randrange(len(self.model.parts))] = layer(self.dice, self.device)

    def do_insert(self) -> None:
        if len(self.model.parts) < 5:
            at = self.dice.randint(0, len(self.model.parts))
            self.model.parts.insert(at, layer(self.dice, self.device))

    def do_prune(self) -> None:
        if len(self.model.parts) > 1:
            del self.model.parts[self.dice.randrange(len(self.model.parts))]

    def do_turn(self) -> None:
        self.model.parts.reverse()

    def do_mask(self) -> None:
        w = self.model.named[3].weight
        if isinstance(w, nn.Parameter):
            w.set(burn.where(w.detach().abs() < 0.1, 0.0, w.detach()))

    def do_rows(self) -> None:
        with burn.no_grad():
            self.model.head.bias[self.dice.randrange(CLASSES)] = self.dice.random()

    def do_new_parameter(self) -> None:
        if nn_computed(self.model.head):
            return
        w = burn.randn(CLASSES, WIDTH, device=self.plain) * 0.1
        self.model.head.weight = nn.Parameter(w.to_device(self.device))

    def do_extra(self) -> None:
        on = self.model.extra is None
        self.model.extra = nn.Linear(WIDTH, CLASSES, device=self.device) if on else None

    def do_tie(self) -> None:
        if self.model.extra is not None and not nn_computed(self.model.head):
            self.model.extra.weight = self.model.head.weight

    def do_untie(self) -> None:
        if self.model.extra is not None:
            self.model.extra = self.model.extra.fork().renew_ids()

    def do_last(self) -> None:
        made = [nn.Identity(), nn.Tanh(), nn.LayerNorm(WIDTH, device=self.device)]
        self.model.named["last"] = self.dice.choice(made)

    def do_freeze(self) -> None:
        self.model.freeze(self.dice.choice(["head", "named", "head.bias"]))

    def do_unfreeze(self) -> None:
        self.model.unfreeze()

    def do_halves(self) -> None:
        self.model.named[3].to_dtype(burn.bfloat16)

    def do_singles(self) -> None:
        self.model.to_dtype(burn.float32)

    def do_scope(self) -> None:
        self.scope = self.dice.choice([None, burn.bfloat16])

    def do_load(self) -> None:
        self.model.load_state_dict({k: v * 1 for k, v in self.model.state_dict().items()})

    def do_record(self) -> None:
        self.model.load_record(self.model.fork().into_record())

    def do_bytes(self) -> None:
        burn.store.load(self.model, burn.store.to_bytes(self.model))

    def do_lora(self) -> None:
        part = self.model.named[3]
        if not nn_computed(part):
            burn.core.apply_lora(part, burn.core.Lora(rank=2, alpha=2.0))
        else:
            burn.core.merge_lora(part)

    def do_norm(self) -> None:
        part = self.model.head
        if nn.parametrizations.is_parametrized(part):
            nn.parametrizations.remove_parametrizations(part, "weight")
        elif self.model.extra is None:
            nn.parametrizations.weight_norm(part)

    def do_optimizer(self) -> None:
        self.optimizer = copy.deepcopy(self.optimizer)
        self.taken()

    def do_both(self) -> None:
        self.model, self.optimizer = copy.deepcopy((self.model, self.optimizer))
        self.taken()

    def do_states(self) -> None:
        state = self.optimizer.state_dict(self.model)
        if state:
            self.optimizer.load_state_dict(self.model, {k: v * 1 for k, v in state.items()})

    def do_rate(self) -> None:
        self.optimizer.lr *= 0.9

    def do_note(self) -> None:
        self.model.note = self.dice.choice([1.0, 2.0, {"a": 1}, None])

    def do_views(self) -> None:
        w = self.model.head.bias.detach()
        self.keep("view", w[:2])
        self.keep("twin", self.model.valid().head.bias.detach())
        for name, t in self.model.state_dict().items():
            self.keep(name, t.reshape(-1)[::2])

    def do_valid(self) -> None:
        self.look(self.model.valid()(burn.ones(2, WIDTH, device=self.plain)).to(burn.float32))

    def do_thread(self) -> None:
        """Read in another thread while a step is made."""
        found: list[Any] = []
        model = self.model

        def read() -> None:
            try:
                for _ in range(3):
                    found.append([t.numpy().shape for t in model.state_dict().values()])
                    model.valid()(burn.ones(2, WIDTH, device=self.plain)).numpy()
            except Exception as error:  # noqa: BLE001 - told by the thread that waits
                found.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        x = self.data.standard_normal((8, WIDTH)).astype(np.float32)
        y = burn.tensor(self.data.integers(0, CLASSES, 8), device=self.plain)
        loss, _ = self.step(burn.tensor(x, device=self.plain), y)
        thread.join()
        self.look(loss)
        errors = [e for e in found if isinstance(e, Exception)]
        if errors:
            raise errors[0]

    def do_draw(self) -> None:
        self.look(burn.rand(3, device=self.plain))

    def do_nothing_seen(self) -> None:
        """An empty batch for what keeps statistics."""
        for part in self.model.parts:
            if isinstance(part, nn.BatchNorm1d):
                part(burn.zeros(0, WIDTH, device=self.plain, dtype=part.weight.dtype))


def nn_computed(part: Any) -> bool:
    """Return whether a module computes its weight."""
    return bool(burn.core.reparameterized(part))


def check(seed: int, device: Any, steps: int = 40) -> int:
    """Compare both runs of a seed; return how many steps were replays.

    Raises:
        Difference: they differ, or what was held changed.
    """
    expected = Surgery(seed, device, False).go(steps)
    found = Surgery(seed, device, True).go(steps)
    last = "the start"
    for at, (a, b) in enumerate(zip(found.seen, expected.seen, strict=True)):
        if isinstance(a, str):
            last = a
            if a != b:
                raise Difference(f"{a}, expected {b}")
        elif (a[0], a[1].shape, bits(a[1])) != (b[0], b[1].shape, bits(b[1])):
            raise Difference(f"observation {at} of {len(found.seen)} after {last}: {a}, not {b}")
    for run in (found, expected):
        for what, x, copied in run.kept:
            if bits(np.asarray(x.numpy())) != bits(copied):
                raise Difference(f"a {what} that was held changed")
    return found.replays


def main() -> None:
    """Check many seeds; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    device, start, replays, wrong, seed = (
        burn.device(args.device), time.monotonic(), 0, 0, args.first,
    )  # fmt: skip
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        try:
            replays += check(seed, device, args.steps)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            wrong += 1
            last = traceback.format_exc().splitlines()[-5:]
            print(f"surgery {seed}: {type(error).__name__}: {error}\n    {last}"[:900], flush=True)
        seed += 1
    print(f"{args.device}: {args.first} to {seed - 1}, {replays} replays, {wrong} differ")


if __name__ == "__main__":
    main()
