"""One kernel with arguments and expected results, and how it is run and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_cube.kernel import CubeFunction

if TYPE_CHECKING:
    from burn_cube.runtime.client import Client

Array = Any


@dataclass(frozen=True)
class Case:
    """A launch and what it must leave behind.

    Attributes:
        name: unique among the cases.
        kernel: what is launched.
        cubes: number of cubes.
        args: makes the arguments: arrays, which the kernel changes, and numbers.
        expect: gives from untouched arguments what each array holds afterwards, None for one
            that is compared with the interpreter's result only.
        options: cube size, bounds, compile-time parameters.
        ulps: units in the last place by which floats may differ.
        needs: capabilities a device must have, by name.
    """

    name: str
    kernel: CubeFunction
    cubes: Any
    args: Callable[[], list[Any]]
    expect: Callable[..., dict[int, Array]] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    ulps: float = 0
    needs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.name


class Collection:
    """Cases that stand beside their kernels: `@case(...)` above `@cube`.

    Attributes:
        cases: in the order of the source.
    """

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def case(
        self,
        args: Callable[[], list[Any]],
        expect: Callable[..., dict[int, Array]] | None = None,
        *,
        cubes: Any = 1,
        ulps: float = 0,
        needs: tuple[str, ...] = (),
        **options: Any,
    ) -> Callable[[CubeFunction], CubeFunction]:
        """Add a case of the function below, under its name; one unit per element by default."""

        def add(kernel: CubeFunction) -> CubeFunction:
            if "cube_dim" not in options:
                options["cube_dim"] = max(1, len(args()[0]))
            made = Case(kernel.__name__, kernel, cubes, args, expect, options, ulps, needs)
            self.cases.append(made)
            return kernel

        return add


def run_on(case: Case, client: Client) -> list[Any]:
    """Run a case on a device; return its arguments as they are afterwards."""
    args = case.args()
    given = [_on(client, a) for a in args]
    case.kernel.launch(client, case.cubes, *given, **case.options)
    return [g.numpy() if isinstance(a, np.ndarray) else a for a, g in zip(args, given, strict=True)]


def _on(client: Client, arg: Any) -> Any:
    """Return an argument as a device takes it; the fields of a struct are arguments."""
    if isinstance(arg, np.ndarray):
        return client.from_numpy(arg)
    if is_dataclass(arg) and not isinstance(arg, type):
        return replace(arg, **{f.name: _on(client, getattr(arg, f.name)) for f in fields(arg)})
    return arg


def interpreted(case: Case) -> list[Any]:
    """Run a case in the interpreter; return its arguments as they are afterwards."""
    args = case.args()
    case.kernel.interpret(case.cubes, *args, **case.options)
    return args


def check(case: Case, client: Client | None = None) -> None:
    """Run a case and compare it with what it must give.

    Args:
        case: what to run.
        client: the device, or None for the interpreter.

    Raises:
        AssertionError: an array differs by more than the case allows.
    """
    got = interpreted(case) if client is None else run_on(case, client)
    wanted = dict(enumerate(interpreted(case))) if client is not None else {}
    if case.expect is not None:
        with np.errstate(all="ignore"):
            expected = case.expect(*case.args())
        for at, array in expected.items():
            compare(f"{case.name}, argument {at}", got[at], array, max(case.ulps, 1))
    for at, array in wanted.items():
        if isinstance(array, np.ndarray):
            compare(f"{case.name}, argument {at}, interpreter", got[at], array, case.ulps)


def compare(what: str, got: Array, wanted: Array, ulps: float) -> None:
    """Compare two arrays element by element, in units of the last place for floats.

    Raises:
        AssertionError: they differ; the text names the first element that does.
    """
    wanted = np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        raise AssertionError(f"{what}: {got.dtype}{got.shape}, not {wanted.dtype}{wanted.shape}")
    if got.dtype.kind != "f" and got.dtype.name != "bfloat16":
        bad = got != wanted
    else:
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(all="ignore"):
            unit = np.spacing(np.abs(wanted.astype(np.float32)
                                     if got.dtype.itemsize < 8 else wanted))  # fmt: skip
            unit = unit.astype(np.float64) * {2: 8192.0}.get(got.dtype.itemsize, 1.0)
            unit = unit * (8.0 if got.dtype.name == "bfloat16" else 1.0)
            far = ~(np.abs(a - b) <= ulps * unit)
        bad = far & (a != b) & ~(np.isnan(a) & np.isnan(b))
    if bad.any():
        at = np.unravel_index(int(np.flatnonzero(bad.reshape(-1))[0]), bad.shape or (1,))
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.size} elements differ, first at "
            f"{tuple(int(i) for i in at)}: {got[at]!r}, not {wanted[at]!r}"
        )


def ramp(n: int, dtype: Any = np.float32, scale: float = 0.25, shift: float = -3.0) -> Array:
    """Return n evenly spaced numbers of both signs.

    Example:
        >>> ramp(3)
        array([-3.  , -2.75, -2.5 ], dtype=float32)
    """
    return (np.arange(n) * scale + shift).astype(dtype)


def ints(n: int, dtype: Any = np.int32, seed: int = 0) -> Array:
    """Return n integers over the whole range of a dtype."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    made = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    edge = np.array([0, 1, info.max, info.min, 2, 3, 7, 0], dtype)[: min(8, n)]
    made[: len(edge)] = edge
    return made


def floats(n: int, dtype: Any = np.float32, seed: int = 0, spread: float = 4.0) -> Array:
    """Return n normal numbers, headed by zeros, infinities and NaN."""
    made = (np.random.default_rng(seed).standard_normal(n) * spread).astype(dtype)
    edge = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5], dtype)[: min(8, n)]
    made[: len(edge)] = edge
    return made
