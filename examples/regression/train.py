"""Predict a number: train on Friedman's benchmark and measure in the target's own unit.

    python examples/regression/train.py [--epochs 40]

`BURN_DEVICE` picks the device; nothing else changes.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from data import make

import burn
from burn import Device, Tensor, nn, optim
from burn.dataset import DataLoader
from burn.train import Learner, SupervisedTraining


class Regressor(nn.Module):
    """Two hidden layers between a standardisation of the inputs and its inverse for the target.

    What was measured on the training rows are Buffers: saved with the weights, never trained.

    Args:
        inputs: training features [N, F].
        targets: training targets [N, 1].
        hidden: size of the hidden layers.
        device: where the parameters live.
    """

    def __init__(
        self, inputs: Any, targets: Any, hidden: int = 64, device: Device | None = None
    ) -> None:
        plain = None if device is None else device.without_autodiff()

        def held(array: Any) -> nn.Buffer:
            return nn.Buffer(burn.tensor(array.astype(np.float32), device=plain))

        self.input_mean, self.input_std = held(inputs.mean(0)), held(inputs.std(0))
        self.target_mean, self.target_std = held(targets.mean(0)), held(targets.std(0))
        self.net = nn.Sequential(
            nn.Linear(inputs.shape[1], hidden, device=device),
            nn.SiLU(),
            nn.Linear(hidden, hidden, device=device),
            nn.SiLU(),
            nn.Linear(hidden, 1, device=device),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the prediction in the target's unit."""
        scaled = (x - self.input_mean) / self.input_std
        return self.net(scaled) * self.target_std + self.target_mean


def main() -> None:
    """Train, then measure on rows that were never seen."""
    parser = argparse.ArgumentParser(description="Regression on Friedman's benchmark.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rows", type=int, default=4000)
    args = parser.parse_args()

    train, test = make(args.rows, seed=1), make(2000, seed=2)
    device = Device.default().autodiff()
    burn.manual_seed(1)
    model = Regressor(*train.arrays, device=device)
    learner = Learner(model, optim.AdamW(lr=3e-3, weight_decay=1e-3), nn.MSELoss())
    training = SupervisedTraining(
        DataLoader(train, 128, shuffle=True, seed=1, device=device),
        DataLoader(test, 1000, device=device),
        epochs=args.epochs,
    )
    print(f"device {device}, {model.num_params():,} parameters")
    training.run(learner)

    infer = model.valid()
    x, y = test.arrays
    error = infer(burn.tensor(x, device=device)).numpy() - y
    print(f"root mean squared error: {np.sqrt(np.mean(error**2)):.3f} (1 is the noise)")
    print(f"R2: {1 - np.mean(error**2) / np.var(y):.3f}")
    for row in range(3):
        print(f"row {row}: predicted {error[row, 0] + y[row, 0]:.2f}, was {y[row, 0]:.2f}")


if __name__ == "__main__":
    main()
