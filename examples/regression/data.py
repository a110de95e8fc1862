"""Friedman's first benchmark: ten features in [0, 1], of which five matter.

    y = 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4 + noise of standard deviation 1

So nothing can predict better than with a root mean squared error of 1.

Source: Friedman 1991, Multivariate Adaptive Regression Splines, section 4.3
"""

from __future__ import annotations

import numpy as np

from burn.dataset import ArrayDataset


def make(count: int, seed: int) -> ArrayDataset:
    """Return rows (features [10], target [1])."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    y += 10 * x[:, 3] + 5 * x[:, 4] + rng.standard_normal(count)
    return ArrayDataset(x.astype(np.float32), y[:, None].astype(np.float32))
