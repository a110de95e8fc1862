"""A training loop written by hand, with every piece that `burn.train` would bring.

    python examples/custom_training_loop/train.py [--epochs 15] [--out FOLDER] [--resume]

Gradients of several small batches count as one large batch, their global norm is clipped, the
learning rate warms up and then falls, an average of the weights is kept and evaluated, and every
epoch leaves a checkpoint from which `--resume` goes on as if nothing had happened.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from pathlib import Path

from data import load

import burn
from burn import Device, functional as F, nn, optim, store
from burn.dataset import DataLoader
from burn.optim import lr_scheduler

PARTS = 2  # small batches per step


class Run:
    """All state of a training in one place: what a checkpoint must hold.

    Args:
        device: with autodiff.
        epochs: how long the schedule lasts.
    """

    def __init__(self, device: Device, epochs: int) -> None:
        device.seed(1)
        self.device = device
        self.model = nn.Sequential(
            nn.Linear(64, 128, device=device),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(128, 10, device=device),
        )
        train, test = load()
        self.train = DataLoader(train, 48, shuffle=True, seed=1, drop_last=True, device=device)
        self.test = DataLoader(test, 400, device=device)
        # Biases are not pulled towards zero; a group picks them by their path.
        self.optimizer = optim.AdamW(weight_decay=0.05)
        self.optimizer.add_group(re.compile(r"\.bias$"), weight_decay=0.0)
        steps = epochs * (len(self.train) // PARTS)
        falling = lr_scheduler.CosineAnnealingLR(4e-3, T_max=steps)
        self.schedule = lr_scheduler.WarmupLR(falling, steps=20)
        self.average = optim.EMA(self.model, decay=0.99, warmup=True)
        self.epoch = 0

    def train_epoch(self) -> tuple[float, float]:
        """Go once through the training images; return mean loss and mean gradient norm."""
        sums = optim.GradientAccumulator()
        losses, norms = burn.zeros((), device=self.device), burn.zeros((), device=self.device)
        steps = 0
        self.train.epoch, self.train.position = self.epoch, 0
        for images, labels in self.train:
            loss = F.cross_entropy(self.model(images), labels)
            sums.add(self.model, loss.backward(), weight=len(labels))
            # Sums stay on the device; nothing is read until the epoch is over.
            losses = losses + loss.detach()
            if sums.batches == PARTS:
                grads = sums.take()
                norms = norms + optim.clip_grad_norm(self.model, grads, max_norm=1.0)
                self.optimizer.step(self.model, grads, lr=self.schedule.lr)
                self.average.update(self.model)
                self.schedule.step()
                steps += 1
        self.epoch += 1
        return losses.item() / (steps * PARTS), norms.item() / steps

    def accuracy(self, model: nn.Module) -> float:
        """Return the percentage of test images that a model recognises."""
        infer = model.valid()
        hits = sum((infer(x).argmax(dim=1) == y).sum().item() for x, y in self.test)
        return 100 * hits / len(self.test.dataset)

    def save(self, folder: Path) -> None:
        """Write a checkpoint beside the old one, then put it in its place."""
        new = folder.with_name(folder.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        store.save(self.model, new / "model.safetensors")
        state = self.optimizer.state_dict(self.model)
        store.save_tensors(state, new / "optimizer.safetensors")
        store.save_tensors(self.average.state_dict(), new / "average.safetensors")
        rest = {
            "epoch": self.epoch,
            "schedule": self.schedule.state_dict(),
            "random": self.device.random_state(),
        }
        (new / "state.json").write_text(json.dumps(rest))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(new, folder)

    def load(self, folder: Path) -> None:
        """Go on where a checkpoint was written."""
        rest = json.loads((folder / "state.json").read_text())
        store.load(self.model, folder / "model.safetensors")
        with store.open(folder / "optimizer.safetensors") as state:
            self.optimizer.load_state_dict(self.model, dict(state))
        with store.open(folder / "average.safetensors") as state:
            # The number of updates so far decides how much the next one counts.
            self.average.load_state_dict(dict(state), rest["schedule"]["position"])
        self.schedule.load_state_dict(rest["schedule"])
        self.device.set_random_state(tuple(rest["random"]))
        self.epoch = rest["epoch"]


def main() -> None:
    """Train from the beginning or from the last checkpoint."""
    parser = argparse.ArgumentParser(description="A training loop by hand.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--stop-after", type=int, help="end early, as if interrupted")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    run = Run(Device.default().autodiff(), args.epochs)
    checkpoint = args.out / "checkpoint"
    if args.resume and checkpoint.is_dir():
        run.load(checkpoint)
    while run.epoch < (args.stop_after or args.epochs):
        loss, norm = run.train_epoch()
        run.save(checkpoint)
        print(
            f"epoch {run.epoch:2}  loss {loss:.4f}  gradient norm {norm:.3f}  "
            f"next lr {run.schedule.lr:.5f}  test {run.accuracy(run.model):.2f} %"
        )
    print(f"test accuracy of the weights: {run.accuracy(run.model):.2f} %")
    print(f"test accuracy of their average: {run.accuracy(run.average.averaged(run.model)):.2f} %")


if __name__ == "__main__":
    main()
