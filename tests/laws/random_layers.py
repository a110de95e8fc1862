"""Random layers on a backend, each beside flex: forward, gradients, gradients of gradients.

A seed stands for a chain of layers of all kinds over random extents, 0 and 1 among them, and
dtypes. Before each layer the reference takes the values and the weights that the device has, so one
layer's tolerance holds for each, however long the chain. What one refuses the other refuses.

    python -m tests.laws.random_layers --backend cpu --first 0 --count 1000
"""

from __future__ import annotations

import argparse
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import burn
from burn import nn
from burn_testing import case_tolerance, difference
from tests.laws.layer_kinds import DTYPES, LAYERS, Dice, fitting, start

LIMIT = 6000
LENGTH = 6


class Difference(AssertionError):
    """A layer that differs from the reference."""


def first_of(out: Any) -> Any:
    """Return the tensor of a layer's output that goes on."""
    while isinstance(out, (tuple, list)):
        out = out[0]
    return out


def all_of(out: Any) -> list[Any]:
    """Return the tensors of a layer's output."""
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in all_of(part)]
    return [] if out is None else [out]


def _of(made: Any, x: Any) -> list[Any]:
    parameters = list(made.parameters()) if isinstance(made, nn.Module) else []
    return [*([x] if x.dtype.is_float else []), *parameters]


def _measured(made: Any, x: Any, cotangents: Any, second: bool) -> list[tuple[str, Any]]:
    """Return what a layer gives: outputs, gradients, buffers, gradients of gradients."""
    outs = all_of(made(x))
    found = [(f"output {i}", o.detach()) for i, o in enumerate(outs)]
    if isinstance(made, nn.Module):
        found += [(f"buffer {k}", v) for k, v in made.state_dict().items() if v.dtype.is_float]
    drawn = cotangents(outs)
    tracked = [(o, c) for o, c in zip(outs, drawn, strict=True) if c is not None and o.is_tracked()]
    if not tracked:
        return found
    wanted = _of(made, x)
    grads = burn.backward([o for o, _ in tracked], [c for _, c in tracked], create_graph=second)
    first = [w.grad(grads) for w in wanted]
    found += [(f"gradient {i}", g.detach()) for i, g in enumerate(first) if g is not None]
    again = [g for g in first if g is not None and g.is_tracked()]
    if second and again:
        total = sum(
            ((g * g).sum().to(burn.float32) for g in again[1:]),
            (again[0] * again[0]).sum().to(burn.float32),
        )
        if total.is_tracked():
            grads = total.backward()
            late = [w.grad(grads) for w in wanted]
            found += [(f"second gradient {i}", g) for i, g in enumerate(late) if g is not None]
    return found


def _guarded(call: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return call(), None
    except (burn.BurnError, IndexError) as error:
        return None, type(error).__name__


def run(seed: int, device: Any, counts: Counter[str] | None = None) -> None:
    """Run the chain of a seed.

    Raises:
        Difference: a layer of the device and of the reference differ.
    """
    dice, flex = Dice(seed), burn.device("flex:9")
    sides = [on.autodiff() for on in (device, flex)]
    values, tokens = start(dice)
    dtype = dice.choice(DTYPES)
    array = values
    for number in range(dice.random.randrange(1, LENGTH)):
        shape = array.shape
        name = dice.choice(fitting(shape, tokens))
        settings = dice.random.randrange(1 << 30)
        second = LAYERS[name].smooth and dice.chance(0.35)
        words = f"chain {seed}, layer {number}: {name} of {dtype.name}{list(shape)}"
        results: list[Any] = []
        state: Any = None
        for on in sides:
            on.seed(seed)
            if tokens:
                x = burn.tensor(array, device=on)
            else:
                x = burn.tensor(array, device=on.without_autodiff()).to(dtype)
                x = burn.tensor(x, device=on).require_grad()

            def measured(x: Any = x, on: Any = on) -> Any:
                nonlocal state
                made = LAYERS[name].make(Dice(settings), shape, {"device": on, "dtype": dtype})  # noqa: B023
                if isinstance(made, nn.Module):
                    if state is None:
                        state = {k: (v.numpy(), v.dtype) for k, v in made.state_dict().items()}
                    else:
                        made.load_state_dict(
                            {k: burn.tensor(v, device=on).to(t) for k, (v, t) in state.items()}
                        )
                on.seed(seed)

                def cotangents(outs: list[Any]) -> list[Any]:
                    rng = np.random.default_rng(seed)
                    return [
                        burn.tensor(rng.standard_normal(o.shape), device=on).to(o.dtype)
                        if o.dtype.is_float
                        else None
                        for o in outs
                    ]

                return [(k, v.dtype, v.numpy()) for k, v in _measured(made, x, cotangents, second)]  # noqa: B023

            results.append(_guarded(measured))
        (found, refusal), (expected, other) = results
        if refusal != other:
            raise Difference(f"{words}: refused with {refusal}, expected {other}")
        if counts is not None:
            counts["refused" if refusal else "layers"] += 1
            counts["second"] += bool(second and not refusal)
        if refusal:
            continue
        _compare(words, found, expected)
        going = found[0][2]
        wide = going.astype(np.float64)
        if prod(going.shape) > LIMIT or len(going.shape) > 5 or not going.ndim:
            return
        if not np.isfinite(wide).all() or np.abs(wide).max(initial=0) > 1e3:
            return
        array, tokens = wide, False


def _compare(words: str, found: Any, expected: Any) -> None:
    if [k for k, _, _ in found] != [k for k, _, _ in expected]:
        raise Difference(
            f"{words}: {[k for k, _, _ in found]}, expected {[k for k, _, _ in expected]}"
        )
    for (key, dtype, a), (_, other, b) in zip(found, expected, strict=True):
        if dtype is not other:
            raise Difference(f"{words}: {key}: {dtype.name}, expected {other.name}")
        wrong = difference(a, b, case_tolerance(dtype.short))
        if wrong:
            raise Difference(f"{words}: {key}: {wrong}")


def main() -> None:
    """Run many chains; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=80)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    device, counts, wrong, begin = burn.device(args.backend), Counter[str](), 0, time.monotonic()
    seed = args.first
    while seed < args.first + args.count and time.monotonic() - begin < args.seconds:
        try:
            run(seed, device, counts)
        except Difference as error:
            wrong += 1
            print(error, flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            wrong += 1
            last = traceback.format_exc().splitlines()[-5:]
            print(f"chain {seed}: {type(error).__name__}: {error}\n    {last}"[:900], flush=True)
        seed += 1
    print(
        f"{args.backend}: chains {args.first} to {seed - 1}, {counts['layers']} layers, "
        f"{counts['second']} with second gradients, {counts['refused']} refused, {wrong} differ, "
        f"{time.monotonic() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()
