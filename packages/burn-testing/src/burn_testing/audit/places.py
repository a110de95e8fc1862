"""Which public functions of burn-tensor call which operation, read from the syntax trees.

A public function leads to an operation when it, or a private function that it calls, calls
`context.<operation>(...)`. So the table cannot go stale and nobody maintains it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import burn_tensor
from burn_ir import CATALOG

Function = ast.FunctionDef | ast.Lambda

# Pieces of backwards and layouts, called by rules and decompositions alone, and what dispatch makes
# of a call (`quantized_matmul`).
INNER = {
    "slice_backward", "diagonal_backward", "unfold_dim_backward", "pad_backward",
    "embedding_backward", "conv_input_grad", "conv_weight_grad", "max_pool_backward",
    "pool_gather", "avg_pool_backward", "adaptive_avg_pool_backward", "interpolate_backward",
    "grid_sample_backward", "attention_backward", "rfft_backward", "irfft_backward",
    "mul_no_nan", "cross_entropy_backward", "recurrent_backward", "recurrent_weights",
    "batch_norm_backward", "quantized_matmul",
}  # fmt: skip
# Called by optimizers, which stand above burn-tensor.
OPTIMIZERS = {
    "sgd_step": "burn.optim.SGD",
    "adam_step": "burn.optim.Adam, burn.optim.AdamW",
    "rmsprop_step": "burn.optim.RMSprop",
    "adagrad_step": "burn.optim.Adagrad",
    "adadelta_step": "burn.optim.Adadelta",
    "adamax_step": "burn.optim.Adamax",
    "lion_step": "burn.optim.Lion",
    "asgd_step": "burn.optim.ASGD",
    "rprop_step": "burn.optim.Rprop",
    "nadam_step": "burn.optim.NAdam",
    "radam_step": "burn.optim.RAdam",
    "adan_step": "burn.optim.Adan",
    "lamb_step": "burn.optim.LAMB",
    "adafactor_step": "burn.optim.Adafactor",
    "muon_step": "burn.optim.Muon",
    "norm_all": "burn.optim.clip_grad_norm",
    "scale_all": "burn.optim.clip_grad_norm, burn.optim.GradScaler",
    "add_scaled_all": "burn.optim.GradientAccumulator",
    "lerp_all": "burn.optim.EMA",
}


class _Calls(ast.NodeVisitor):
    """Collects what a function names."""

    def __init__(self) -> None:
        self.entries: set[str] = set()
        self.names: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in CATALOG:
            self.entries.add(node.attr)
        self.names.add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        # Tables of operations by name: getattr(context, "exp"), _make("exp").
        if isinstance(node.value, str) and node.value in CATALOG:
            self.entries.add(node.value)


def _functions(path: Path) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield (owner, name, tree) of what a module defines."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield "", node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield node.name, inner.name, inner
                elif isinstance(inner, ast.Assign):
                    for target in inner.targets:
                        if isinstance(target, ast.Name):
                            yield node.name, target.id, inner
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield "", target.id, node


def public() -> dict[str, Any]:
    """Return every public function by how users call it: `Tensor.add`, `functional.relu`."""
    found: dict[str, Any] = {}
    for name in dir(burn_tensor.Tensor):
        if not name.startswith("_") or name in ("__getitem__", "__setitem__", "__invert__"):
            found[f"Tensor.{name}"] = getattr(burn_tensor.Tensor, name)
    for space in ("functional", "linalg", "fft"):
        module = getattr(burn_tensor, space)
        for name in getattr(module, "__all__", dir(module)):
            if callable(getattr(module, name)) and not name.startswith("_"):
                found[f"{space}.{name}"] = getattr(module, name)
    for name in getattr(burn_tensor, "__all__", dir(burn_tensor)):
        value = getattr(burn_tensor, name)
        if callable(value) and not isinstance(value, type) and not name.startswith("_"):
            found[f"burn.{name}"] = value
    return found


@cache
def table() -> dict[str, list[str]]:
    """Return the public functions that lead to each operation, the nearest first."""
    folder = Path(burn_tensor.__file__).parent
    calls: dict[str, _Calls] = {}
    for path in sorted(folder.rglob("*.py")):
        for _, name, tree in _functions(path):
            seen = _Calls()
            seen.visit(tree)
            have = calls.setdefault(name, _Calls())
            have.entries |= seen.entries
            have.names |= seen.names - {name}
    reached = {name: set(seen.entries) for name, seen in calls.items()}
    hidden = [
        n for n in calls if n.startswith("_") or not any(k.endswith(f".{n}") for k in public())
    ]
    for _ in range(4):  # through private functions
        for name, seen in calls.items():
            for inner in seen.names & set(hidden):
                reached[name] |= reached[inner]
    out: dict[str, list[str]] = {}
    for called in public():
        name = called.rpartition(".")[2]
        for entry in reached.get(name, ()):
            out.setdefault(entry, []).append(called)
    for entry, names in out.items():
        names.sort(key=lambda n: (_distance(entry, n), n))
    return out


def _distance(entry: str, called: str) -> int:
    """Return 0 for the operation's own name, 1 for one that holds it, else 2."""
    name = called.rpartition(".")[2].strip("_")
    if name == entry:
        return 0
    plain = entry.removesuffix("_dim")
    return 1 if name == plain or name.rstrip("123d") in (entry, f"{entry}") else 2
