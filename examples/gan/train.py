"""A generative adversarial network that learns to draw digits.

    python examples/gan/train.py [--epochs 30] [--out FOLDER]

The discriminator learns to tell real images from drawn ones, the generator to draw images that it
takes for real. Writes `samples.png` and the weights of the generator.

Source: Goodfellow et al. 2014; Radford et al. 2016
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from models import Discriminator, Generator

import burn
from burn import Device, Tensor, functional as F, optim, store
from burn.dataset import ArrayDataset, CsvDataset, DataLoader

FILE = Path(__file__).parents[1] / "digits" / "digits.csv.gz"
SHADES = " .:-=+*#%@"


def real_images() -> ArrayDataset:
    """Return the handwritten digits of the example `digits`, [N, 1, 8, 8] in [0, 1]."""
    rows = CsvDataset(FILE).values
    return ArrayDataset((rows[:, :64] / 16).reshape(-1, 1, 8, 8).astype(np.float32))


def loss_of(scores: Tensor, real: bool) -> Tensor:
    """Return the cost of scores for images that ought to be taken for real or not."""
    # The logistic loss; a target of 0.9 keeps the discriminator from becoming too sure.
    wanted = burn.full(scores.shape, 0.9 if real else 0.0, device=scores.device)
    return F.binary_cross_entropy_with_logits(scores, wanted)


class Adversaries:
    """The two models with an optimizer each.

    Args:
        device: with autodiff.
        lr: learning rate of both.
    """

    def __init__(self, device: Device, lr: float = 1e-3) -> None:
        self.device = device
        self.generator = Generator(device=device)
        self.discriminator = Discriminator(device=device)
        self.draws = optim.Adam(lr=lr, betas=(0.5, 0.999))
        self.judges = optim.Adam(lr=lr, betas=(0.5, 0.999))

    def noise(self, count: int) -> Tensor:
        """Return what drawings begin with."""
        return burn.randn(count, self.generator.latent, device=self.device)

    def step(self, real: Tensor) -> tuple[Tensor, Tensor]:
        """Let both learn from a batch of real images; return their losses, still on the device."""
        drawn = self.generator(self.noise(len(real)))
        # Detached: the discriminator's step needs no gradient of the generator.
        judged = loss_of(self.discriminator(real), True)
        judged = judged + loss_of(self.discriminator(drawn.detach()), False)
        self.judges.step(self.discriminator, judged.backward())

        # The gradients hold those of the discriminator too; the step takes what it asks for, and
        # nothing lingers that would have to be zeroed.
        fooled = loss_of(self.discriminator(drawn), True)
        self.draws.step(self.generator, fooled.backward())
        return judged.detach(), fooled.detach()


def write_png(images: np.ndarray, path: Path) -> None:
    """Write images side by side, ten in a row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    rows = [np.concatenate(list(padded[k : k + 10]), axis=1) for k in range(0, len(padded), 10)]
    plt.imsave(path, np.concatenate(rows), cmap="gray", vmin=0, vmax=1)


def show(images: np.ndarray) -> None:
    """Print images side by side as text."""
    for row in range(8):
        lines = images[:, 0, row]
        print("  ".join("".join(SHADES[int(9.99 * v)] * 2 for v in line) for line in lines))


def main() -> None:
    """Train, draw, save."""
    parser = argparse.ArgumentParser(description="Learn to draw digits.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs")
    args = parser.parse_args()

    burn.manual_seed(1)
    device = Device.default().autodiff()
    pair = Adversaries(device)
    loader = DataLoader(real_images(), 64, shuffle=True, seed=1, drop_last=True, device=device)
    for epoch in range(1, args.epochs + 1):
        sums = burn.zeros(2, device=device)
        for (real,) in loader:
            sums = sums + burn.stack(pair.step(real))
            device.flush()  # every batch records the same program
        if epoch == 1 or epoch % 10 == 0 or epoch == args.epochs:
            judged, fooled = (sums / len(loader)).tolist()
            print(f"epoch {epoch:3}  discriminator {judged:.3f}  generator {fooled:.3f}")

    drawn = pair.generator.valid()(pair.noise(40)).numpy()
    show(drawn[:6])
    args.out.mkdir(parents=True, exist_ok=True)
    write_png(drawn, args.out / "samples.png")
    store.save(pair.generator, args.out / "generator.safetensors")
    print(f"saved to {args.out}")


if __name__ == "__main__":
    main()
