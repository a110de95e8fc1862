"""Random graphs, saved and loaded: what they give is what the functions give that they are made of.

A seed stands for a chain of layers, its input, and whether a scope of mixed precision is inside.
The graph runs on flex and on another device, from memory and from a file; the bits are those that
the chain itself has there.

    python -m tests.fusion.random_graphs --device cpu --first 0 --count 1000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import burn
from burn import nn
from burn_core import Graph
from tests.fusion.random_programs import Difference, bits
from tests.laws.layer_kinds import LAYERS, Dice, fitting, start
from tests.laws.random_layers import all_of, first_of


class Chain(nn.Module):
    """Layers one after the other; of the last one everything."""

    def __init__(self, layers: list[Any], scope: Any) -> None:
        self.layers = layers
        self.scope = scope

    def forward(self, x: Any) -> Any:
        with burn.autocast(self.scope):
            for layer in self.layers[:-1]:
                x = first_of(layer(x))
            return all_of(self.layers[-1](x))


def made(seed: int) -> tuple[Chain, Any, list[str]] | None:
    """Return the chain of a seed on flex, its input, and the names of the layers."""
    dice, flex = Dice(seed), burn.device("flex")
    array, tokens = start(dice)
    x = burn.tensor(array, device=flex)
    x = x if tokens else x.to(burn.float32)
    layers, names, out = [], [], x
    flex.seed(seed)
    for _ in range(dice.random.randrange(1, 5)):
        # One that turns draws anew at each call.
        name = dice.choice([n for n in fitting(out.shape, tokens) if n != "turn"])
        settings = Dice(dice.random.randrange(1 << 30))
        try:
            layer = LAYERS[name].make(settings, out.shape, {"device": flex, "dtype": burn.float32})
            layer = layer.valid() if isinstance(layer, nn.Module) else layer
            out = first_of(layer(out))
        except (burn.BurnError, IndexError):
            continue
        tokens = False
        layers.append(layer)
        names.append(name)
        if not out.shape or not out.dtype.is_float:
            break
    scope = burn.bfloat16 if dice.chance(0.2) else None
    return (Chain(layers, scope).valid(), x, names) if layers else None


def check(seed: int, device: Any, folder: Path) -> str:
    """Compare the graph of a seed with its chain; return what came of it.

    Raises:
        Difference: they differ.
    """
    found = made(seed)
    if found is None:
        return "nothing"
    chain, x, names = found
    flex = burn.device("flex")
    known = {
        str(on): [t.numpy() for t in chain.fork().to_device(on)(burn.tensor(x.numpy(), device=on))]
        for on in (flex, device)
    }
    capture = burn.Device.capture()
    symbol = burn.zeros(*x.shape, dtype=x.dtype, device=capture)
    try:
        graph = burn.graph(chain.fork().to_device(capture), symbol)
    except burn.CaptureError as error:
        return f"refused: {names} {error}"
    path = folder / f"{seed}.safetensors"
    graph.save(path)
    for title, one in (("graph", graph), ("file", Graph.load(path))):
        for on in (flex, device):
            given = x.numpy() if title == "graph" else burn.tensor(x.numpy(), device=on)
            out, expected = all_of(one.run(on, given)), known[str(on)]
            words = f"{title} {seed} {names} on {on}"
            if len(out) != len(expected):
                raise Difference(f"{words}: {len(out)} results, not {len(expected)}")
            for k, (a, b) in enumerate(zip(out, expected, strict=True)):
                here = a.numpy()
                if (here.dtype, here.shape) != (b.dtype, b.shape):
                    raise Difference(f"{words}: {k} {here.dtype}{here.shape} {b.dtype}{b.shape}")
                if bits(here) != bits(b):
                    raise Difference(f"{words}: {k} has other bits than the chain")
    path.unlink()
    return "same"


def main() -> None:
    """Check many seeds; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    device, begun, seed = burn.device(args.device), time.monotonic(), args.first
    came: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        while seed < args.first + args.count and time.monotonic() - begun < args.seconds:
            try:
                what = check(seed, device, Path(folder))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
                what = "differ"
                print(f"{seed}: {type(error).__name__}: {error}"[:600], flush=True)
            if what.startswith("refused"):
                print(f"{seed}: {what}"[:300], flush=True)
            what = what.partition(":")[0]
            came[what] = came.get(what, 0) + 1
            seed += 1
    print(f"{args.device}: graphs {args.first} to {seed - 1}: {came}")


if __name__ == "__main__":
    main()
