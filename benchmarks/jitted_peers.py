"""Workloads of `workloads.py` as JAX and tinygrad have them, each one compiled function."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Call = Callable[[], Any]


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Return the same samples in all processes."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def labels(count: int, classes: int) -> np.ndarray[Any, Any]:
    """Return the same classes in all processes."""
    return np.random.default_rng(1).integers(0, classes, count)


def jax_workloads() -> dict[str, Callable[[], Call]]:
    """Return the workloads that are written out for JAX, each under jit."""
    import jax
    import jax.numpy as jnp

    def elementwise(count: int) -> Call:
        x, y, z = (jnp.asarray(floats(3, count)[k]) for k in range(3))
        fn = jax.jit(lambda x, y, z: jax.nn.gelu(x * y + z, approximate=False) * jnp.tanh(z) + y)
        return lambda: fn(x, y, z).block_until_ready()

    def mlp_step(n: int) -> Call:
        sizes = (784, 512, 512, 10)
        layers = [(jnp.asarray(floats(a, b) * 0.05), jnp.zeros(b)) for a, b in pairwise(sizes)]
        x, y = jnp.asarray(floats(n, 784)), jnp.asarray(labels(n, 10))

        def loss(layers: Any) -> Any:
            v = x
            for k, (w, b) in enumerate(layers):
                v = v @ w + b
                v = v if k == len(layers) - 1 else jax.nn.relu(v)
            return -jnp.take_along_axis(jax.nn.log_softmax(v), y[:, None], 1).mean()

        @jax.jit
        def step(state: Any) -> Any:
            layers, m, s, t = state
            g = jax.grad(loss)(layers)
            tree = jax.tree_util.tree_map
            m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            s = tree(lambda s, g: 0.999 * s + 0.001 * g * g, s, g)
            t = t + 1
            layers = tree(
                lambda p, m, s: p
                - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.999**t)) + 1e-8),
                layers, m, s,
            )  # fmt: skip
            return layers, m, s, t

        zeros = jax.tree_util.tree_map(jnp.zeros_like, layers)
        held = [(layers, zeros, zeros, jnp.zeros((), jnp.float32))]

        def run() -> Any:
            held[0] = jax.block_until_ready(step(held[0]))

        return run

    def chain() -> Call:
        x, y = jnp.asarray(floats(8, 8)), jnp.asarray(floats(8, 8) * 0.5)

        def total(x: Any) -> Any:
            v = x
            for _ in range(10):
                v = v * y + y
            return v.sum()

        fn = jax.jit(jax.grad(total))
        return lambda: fn(x).block_until_ready()

    return {
        "elementwise 16M": lambda: elementwise(1 << 24),
        "elementwise 1M": lambda: elementwise(1 << 20),
        "mlp step 64": lambda: mlp_step(64),
        "mlp step 512": lambda: mlp_step(512),
        "mlp step 1024": lambda: mlp_step(1024),
        "small chain": chain,
    }


def tinygrad_workloads() -> dict[str, Callable[[], Call]]:
    """Return the workloads that are written out for tinygrad, each under TinyJit."""
    os.environ.setdefault("DEV", "CPU")
    from tinygrad import Context, Device, Tensor, TinyJit, nn

    def put(array: Any) -> Any:
        return Tensor(array).realize()

    def run(fn: Callable[[], Any]) -> Call:
        device, jitted = Device[Device.DEFAULT], TinyJit(fn)

        def call() -> None:
            jitted()
            device.synchronize()

        return call

    def elementwise(count: int) -> Call:
        x, y, z = (put(floats(3, count)[k].copy()) for k in range(3))
        # its gelu is the approximation by tanh, which is the cheaper one
        return run(lambda: ((x * y + z).gelu() * z.tanh() + y).realize())

    def mlp(sizes: tuple[int, ...]) -> list[Any]:
        parts: list[Any] = []
        for a, b in pairwise(sizes):
            parts += [nn.Linear(a, b), Tensor.relu]
        return parts[:-1]

    def cnn() -> list[Any]:
        return [
            nn.Conv2d(1, 32, 3), Tensor.relu, nn.Conv2d(32, 64, 3), Tensor.relu,
            lambda v: v.max_pool2d(2).flatten(1), nn.Linear(64 * 12 * 12, 128), Tensor.relu,
            nn.Linear(128, 10),
        ]  # fmt: skip

    def training(model: list[Any], x: Any, y: Any) -> Call:
        optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

        def step() -> Any:
            with Context(TRAINING=1):
                optimizer.zero_grad()
                loss = x.sequential(model).sparse_categorical_crossentropy(y).backward()
                return loss.realize(*optimizer.schedule_step())

        return run(step)

    def chain() -> Call:
        x, y = put(floats(8, 8)), put(floats(8, 8) * 0.5)

        def gradient() -> Any:
            v = x
            for _ in range(10):
                v = v * y + y
            return v.sum().gradient(x)[0].realize()

        return run(gradient)

    def inference(model: list[Any], x: Any) -> Call:
        return run(lambda: x.sequential(model).realize())

    sizes = (784, 512, 512, 10)
    return {
        "elementwise 16M": lambda: elementwise(1 << 24),
        "elementwise 1M": lambda: elementwise(1 << 20),
        "mlp step 64": lambda: training(mlp(sizes), put(floats(64, 784)), put(labels(64, 10))),
        "mlp step 512": lambda: training(mlp(sizes), put(floats(512, 784)), put(labels(512, 10))),
        "cnn step 64": lambda: training(cnn(), put(floats(64, 1, 28, 28)), put(labels(64, 10))),
        "cnn inference 1": lambda: inference(cnn(), put(floats(1, 1, 28, 28))),
        "mlp inference 1": lambda: inference(mlp((16, 32, 4)), put(floats(1, 16))),
        "small chain": chain,
    }
