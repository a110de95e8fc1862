"""Writes the cases that this project added, from PyTorch's answers: of `ops/`, and Rprop's runs.

    PYTHONPATH=<where torch is> python tests/cases/make.py

The other files of `ops/` came from elsewhere; the form of all is that of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent / "ops"
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}
Rng = np.random.Generator


class Writer:
    """Collects the calls of one file."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.data: dict[str, list[Any]] = {}

    def tensor(self, t: torch.Tensor, grad: bool = False) -> dict[str, Any]:
        """Return a tensor as a row of JSON, its elements put into the arrays."""
        kind = SHORT[t.dtype]
        flat = self.data.setdefault(kind, [])
        at = sum(a.size for a in flat)
        flat.append(t.detach().contiguous().numpy().reshape(-1).copy())
        row: dict[str, Any] = {"at": at, "dtype": kind, "shape": list(t.shape)}
        return row | {"grad": True} if grad else row

    def value(self, v: Any) -> Any:
        """Return an argument as JSON."""
        if isinstance(v, torch.Tensor):
            return self.tensor(v, v.requires_grad)
        if isinstance(v, tuple):
            return {"tuple": [self.value(e) for e in v]}
        return [self.value(e) for e in v] if isinstance(v, list) else v

    def call(self, fn: str, called: Callable[..., Any], args: list[Any], **kwargs: Any) -> None:
        """Add a call and what PyTorch answers, with gradients where inputs want them."""
        result = called(*args, **kwargs)
        single = isinstance(result, torch.Tensor)
        outs = [result] if single else list(result)
        flat = [e for a in args for e in (a if isinstance(a, tuple) else (a,))]
        inputs = [a for a in [*flat, *kwargs.values()] if isinstance(a, torch.Tensor)]
        leaves = [a for a in inputs if a.requires_grad]
        kind = SHORT[inputs[0].dtype]
        row: dict[str, Any] = {
            "id": "", "fn": fn, "args": [self.value(a) for a in args],
            "kwargs": {k: self.value(v) for k, v in kwargs.items()}, "single": single,
            "out": [self.tensor(o) for o in outs],
        }  # fmt: skip
        if leaves:
            rng = np.random.default_rng(len(self.rows))
            given = [
                torch.tensor(rng.normal(size=tuple(o.shape)), dtype=o.dtype)
                if o.requires_grad and (single or o.numel())
                else None
                for o in outs
            ]
            pairs = [(o, c) for o, c in zip(outs, given, strict=True) if c is not None]
            grads = torch.autograd.grad(
                [o for o, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True
            )
            row["cotangents"] = [None if c is None else self.tensor(c) for c in given]
            row["grads"] = [None if g is None else self.tensor(g) for g in grads]
        row["id"] = f"{kind}/{sum(r['id'].startswith(kind) for r in self.rows)}"
        self.rows.append(row)

    def write(self, name: str) -> None:
        """Write both files."""
        for row in self.rows:
            row["id"] = f"{name}/{row['id']}"
        (HERE / f"{name}.json").write_text(json.dumps(self.rows) + "\n")
        np.savez_compressed(
            HERE / f"{name}.npz", **{k: np.concatenate(v) for k, v in self.data.items()}
        )


def real(rng: Rng, low: float, high: float, *shape: int) -> Any:
    """Return numbers of a range, away from its ends."""
    return rng.uniform(low, high, shape)


def main() -> None:
    """Write the files."""
    files: dict[str, Writer] = {}

    def add(
        name: str, arrays: list[Any], *rest: Any, fn: str = "", grad: bool = True, **kw: Any
    ) -> None:
        called: Any = torch
        target = fn or f"Tensor.{name}"
        for part in target.removeprefix("burn.").split("."):
            called = getattr(called, part)
        for dtype in (torch.float64, torch.float32):
            made = [
                a if not isinstance(a, np.ndarray) or a.dtype.kind in "bi"
                else torch.tensor(a, dtype=dtype, requires_grad=grad)
                for a in arrays
            ]  # fmt: skip
            made = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in made]
            files.setdefault(name, Writer()).call(target, called, [*made, *rest], **kw)

    rng = np.random.default_rng(24)
    ranges = {
        "lgamma": (-3.8, 12), "digamma": (-2.8, 12), "erfinv": (-0.999, 0.999), "erfc": (-3, 4),
        "sinc": (-3, 3), "signbit": (-2, 2), "isposinf": (-2, 2), "isneginf": (-2, 2),
    }  # fmt: skip
    for name, (low, high) in ranges.items():
        for shape in ((3, 4), (), (2, 0), (40,)):
            add(name, [np.asarray(real(rng, low, high, *shape))], grad=name[:2] != "is" and
                name != "signbit")  # fmt: skip
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0, 80.0])
    for name in ("lgamma", "erfc", "erfinv", "digamma", *("signbit", "isposinf", "isneginf")):
        add(name, [special], grad=False)
    add("sinc", [np.array([0.0, 1.0, -0.5])])
    for n in (0, 1, 2, 4):
        add("polygamma", [real(rng, 0.3, 6, 3, 4)], n, grad=n != 1)
        add("polygamma", [real(rng, 1.5, 6, 5)], n)
    for p in (1, 2, 3):
        add("mvlgamma", [real(rng, 1.2, 6, 3, 4)], p)
    for dim in (0, 1, -1):
        add("logcumsumexp", [real(rng, -5, 5, 4, 5)], dim)
    add("logcumsumexp", [np.array([-300.0, 2.0, 300.0, 1.0])], 0)
    add("logcumsumexp", [np.array([-np.inf, -np.inf, 2.0, np.inf, 1.0, np.nan])], 0, grad=False)
    two = [real(rng, -3, 3, 3, 4), real(rng, -3, 3, 4)]
    for name in ("fmax", "fmin", "logaddexp2"):
        add(name, two)
    add("copysign", [two[0]], -1.5)
    add("copysign", two, grad=False)
    add("ldexp", two, grad=False)
    add("ldexp", [real(rng, -3, 3, 3), np.array([1, 2, 5])])
    odd = [np.array([np.nan, 1.0, np.nan, -0.0, np.inf]), np.array([1.0, np.nan, np.nan, 0.0, 2.0])]
    for name in ("copysign", "fmax", "fmin"):
        add(name, odd, grad=False)
    add("heaviside", [np.array([-1.0, 0.0, 3.0, np.nan]), np.array(0.5)], grad=False)
    for kw in ({}, {"n": 2}, {"dim": 0}, {"n": 0}, {"n": 9}):
        add("diff", [real(rng, -3, 3, 3, 4)], **kw)
    add("diff", [np.array([True, False, False])], grad=False)
    add("select_scatter", [real(rng, -3, 3, 3, 4), real(rng, -3, 3, 3)], 1, -1)
    add("slice_scatter", [real(rng, -3, 3, 6, 2), real(rng, -3, 3, 2, 2)], 0, 1, 5, 2)
    for shape, k in (((3, 4), 0), ((4, 3), -1), ((3, 4), 2)):
        size = np.diagonal(np.zeros(shape), k).size
        add("diagonal_scatter", [real(rng, -3, 3, *shape), real(rng, -3, 3, size)], k)
    for name, shape in (
        ("hsplit", (2, 6)),
        ("vsplit", (6, 2)),
        ("dsplit", (2, 1, 6)),
        ("hsplit", (6,)),
    ):
        add(name, [real(rng, -3, 3, *shape)], 3)
        add(name, [real(rng, -3, 3, *shape)], (1, 4))
    add("split_with_sizes", [real(rng, -3, 3, 5, 2)], [2, 0, 3])
    add("diagflat", [real(rng, -3, 3, 2, 2)], 1)
    runs = np.array([1.0, 1.0, 2.0, 2.0, 2.0, 1.0])
    add("unique_consecutive", [runs], grad=False)
    add("unique_consecutive", [runs.reshape(2, 3)], True, True, grad=False)
    add(
        "addr",
        [real(rng, -3, 3, 2, 3), real(rng, -3, 3, 2), real(rng, -3, 3, 3)],
        beta=0.5,
        alpha=2,
    )
    y = real(rng, -3, 3, 3, 4)
    add("trapezoid", [y], fn="burn.trapezoid")
    add("trapezoid", [y], fn="burn.trapezoid", dx=0.5, dim=0)
    add("trapezoid", [y, np.sort(real(rng, 0, 3, 4))], fn="burn.trapezoid")
    add("trapezoid", [y, np.sort(real(rng, 0, 3, 3))], fn="burn.trapezoid", dim=0)
    add("trapezoid", [y], fn="burn.cumulative_trapezoid")

    signal = real(rng, -1, 1, 2, 37)
    spectra(files.setdefault("stft", Writer()), files.setdefault("istft", Writer()), signal)

    # ---- matrices: symmetric gradients are compared where PyTorch's are symmetric
    for shape in ((3, 3), (2, 4, 4), (1, 1)):
        a = rng.normal(size=shape)
        positive = a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])
        right = rng.normal(size=(*shape[:-1], 2))
        for upper in (False, True):
            add("linalg.cholesky", [positive], fn="burn.linalg.cholesky", upper=upper)
        add("linalg.cholesky", [positive], fn="Tensor.cholesky")
        factor = np.linalg.cholesky(positive)
        # PyTorch's gradients of factors are not those of triangles.
        add("cholesky_solve", [right, factor], grad=False)
        add("cholesky_solve", [right, np.swapaxes(factor, -1, -2).copy()], True, grad=False)
        add("cholesky_inverse", [factor], grad=False)
        for side in ("L", "U"):
            add("linalg.eigvalsh", [positive], side, fn="burn.linalg.eigvalsh")
        add("linalg.matrix_exp", [a], fn="burn.linalg.matrix_exp")
        add("linalg.matrix_exp", [a * 20], fn="Tensor.matrix_exp", grad=False)
        for name in ("det", "logdet", "inverse"):
            add(name, [positive])
        add("matrix_power", [a], 3)
        add("pinverse", [a])
    add("linalg.vander", [real(rng, -2, 2, 2, 3)], fn="burn.linalg.vander", N=4)
    for m, n, k in ((5, 3, 2), (3, 3, 1), (3, 5, 2)):
        a = rng.normal(size=(2, m, n)) + 3 * np.eye(m, n)
        right = rng.normal(size=(2, m, k))
        # The driver that needs full rank and gives the same solution; `residuals` of it as well.
        for dtype in (torch.float64, torch.float32):
            x = torch.tensor(a, dtype=dtype, requires_grad=True)
            r = torch.tensor(right, dtype=dtype, requires_grad=True)

            def solved(x: Any, r: Any) -> Any:
                return torch.linalg.lstsq(x, r, driver="gelsd")

            files.setdefault("linalg.lstsq", Writer()).call("burn.linalg.lstsq", solved, [x, r])

    for name, file in files.items():
        file.write(name)
    runs_of_rprop()


def spectra(forth: Writer, back: Writer, signal: Any) -> None:
    """Add spectra as pairs of parts, and signals of such pairs."""
    settings: tuple[dict[str, Any], ...] = (
        {"n_fft": 8, "window": 8}, {"n_fft": 8, "hop_length": 3, "window": 8, "center": False},
        {"n_fft": 9, "hop_length": 2, "win_length": 6, "window": 6, "normalized": True},
        {"n_fft": 8, "hop_length": 8, "pad_mode": "constant"},
    )  # fmt: skip
    for dtype in (torch.float64, torch.float32):
        for given in settings:
            kw = dict(given)
            if "window" in kw:
                kw["window"] = torch.hann_window(kw["window"], dtype=dtype) + 0.1
            x = torch.tensor(signal, dtype=dtype, requires_grad=True)

            def transformed(x: Any, **kw: Any) -> Any:
                found = torch.stft(x, return_complex=True, **kw)
                return found.real, found.imag

            forth.call("burn.stft", transformed, [x], **kw)
            pair = tuple(t.detach().requires_grad_() for t in transformed(x, **kw))
            kw.pop("pad_mode", None)

            def restored(pair: Any, **kw: Any) -> Any:
                return torch.istft(torch.complex(*pair), **kw)

            for length in (None, 30):
                back.call("burn.istft", restored, [pair], length=length, **kw)


def runs_of_rprop() -> None:
    """Put trajectories of Rprop into `optim.json`, in the place of those that it holds."""
    path = HERE.parent / "optim.json"
    file = json.loads(path.read_text())
    file["runs"] = [r for r in file["runs"] if r["cls"] != "Rprop"]
    for kwargs in (
        {"lr": 0.05},
        {"lr": 0.1, "etas": [0.3, 1.5], "step_sizes": [0.02, 0.2], "maximize": True},
    ):
        given = [torch.tensor(file[k], dtype=torch.float32) for k in ("p0", "q0")]
        pair = [t.clone().requires_grad_() for t in given]
        settings: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in kwargs.items()}
        optimizer = torch.optim.Rprop(pair, **settings)
        trajectory = []
        for grads in file["grads"]:
            for p, g in zip(pair, grads, strict=True):
                p.grad = torch.tensor(g, dtype=torch.float32)
            optimizer.step()
            trajectory.append([p.tolist() for p in pair])
        file["runs"].append({"cls": "Rprop", "kwargs": kwargs, "trajectory": trajectory})
    path.write_text(json.dumps(file))


if __name__ == "__main__":
    main()
