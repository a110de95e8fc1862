"""The `@cube` decorator, and what a decorated function can do: show its IR and source, launch."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn_cube.builder import BOUNDS, Builder
from burn_cube.errors import KernelError, LaunchError
from burn_cube.frontend.calls import Inlined
from burn_cube.frontend.expand import current_expander, expand
from burn_cube.frontend.frame import Frame
from burn_cube.frontend.source import Source
from burn_cube.ir import Kernel
from burn_cube.parameters import Parameters, facts_of, flat
from burn_cube.verify import verify
from burn_std.dtypes import DType, int64

if TYPE_CHECKING:
    import ast

    from burn_cube.runtime.client import Client

CubeDim = int | tuple[int, ...]


class CubeFunction:
    """A function of the kernel language.

    Another `@cube` function calls it and inlines it; from Python it is launched, or shown with
    `ir` and `source`.

    Attributes:
        python: the function as written.
        bound: arguments that come first, the object of a method.
    """

    def __init__(self, python: Callable[..., Any], bound: tuple[Any, ...] = ()) -> None:
        self.python = python
        self.bound = bound
        self.__name__ = python.__name__
        self.__qualname__ = python.__qualname__
        self.__doc__ = python.__doc__
        self.__module__ = python.__module__
        self._inlined: Inlined | None = None
        self._made: dict[Any, Kernel] = {}
        self._texts: dict[str, Kernel] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<cube function {self.__qualname__}>"

    def __get__(self, instance: object, owner: type | None = None) -> CubeFunction:
        """Return the method of an object; the object is a compile-time value."""
        if instance is None:
            return self
        method = CubeFunction(self.python, (instance,))
        method._inlined = self.inlined
        return method

    @property
    def inlined(self) -> Inlined:
        """What inlining needs: source, outer names, how arguments bind."""
        if self._inlined is None:
            fn = self.python
            cells = fn.__closure__ or ()
            names = {}
            for name, cell in zip(fn.__code__.co_freevars, cells, strict=True):
                try:
                    names[name] = cell.cell_contents
                except ValueError:  # a function that names itself before it is bound
                    names[name] = self
            signature = inspect.signature(fn)

            def bind(*args: Any, **kwargs: Any) -> dict[str, Any]:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                return dict(bound.arguments)

            self._inlined = Inlined(Source(fn), [names, fn.__globals__], bind)
        return self._inlined

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inline the function where plain Python calls it during an expansion."""
        expander = current_expander(self.__name__)
        node = self.inlined.source.tree
        return expander.inline(node, self.inlined, [*self.bound, *args], kwargs)

    # --- from Python to IR -----------------------------------------------------------------

    def ir(
        self,
        *args: Any,
        cube_dim: CubeDim = 256,
        index: DType = int64,
        bounds: str = "checked",
        plane_dim: int = 32,
        fast_math: bool = False,
        **comptime: Any,
    ) -> Kernel:
        """Return the kernel that these arguments make.

        Args:
            args: one for each run-time parameter: a dtype, a `Vector`, an array or a number; for
                a `Tensor` an array or a pair (dtype, rank).
            cube_dim: units of a cube.
            index: dtype of positions and lengths.
            bounds: `checked`, `validated` or `unchecked`.
            plane_dim: units of a plane.
            fast_math: give up the rules for inf and NaN.
            comptime: the parameters after `*`.

        Raises:
            KernelError: the function breaks a rule of the language; it names the place.

        Example:
            >>> from burn_cube import ABSOLUTE_POS, Array
            >>> from burn_std.dtypes import float32
            >>> @cube
            ... def negate(x: Array):
            ...     x[ABSOLUTE_POS] = -x[ABSOLUTE_POS]
            >>> print(negate.ir(float32, cube_dim=32))
            kernel negate(%x: global<f32>) cube 32x1x1 plane 32 index i64 bounds checked
              %0 = special absolute_pos : i64
              %1 = load %x, %0 : f32
              %2 = neg %1 : f32
              store %x, %0, %2
        """
        facts = tuple(facts_of(arg) for arg in args)
        options = (_dims(cube_dim), index, bounds, plane_dim, fast_math)
        try:
            key: Any = (facts, options, tuple(sorted(comptime.items())))
            found = self._made.get(key)
        except TypeError:  # a compile-time value that is not hashable: made anew each time
            return self._make(facts, options, comptime)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = self._make(facts, options, comptime)
        return found

    def _make(self, facts: tuple[Any, ...], options: Any, comptime: dict[str, Any]) -> Kernel:
        dims, index, bounds, plane_dim, fast_math = options
        if bounds not in BOUNDS:
            raise LaunchError(self.__name__, f"bounds is one of {', '.join(BOUNDS)}", got=bounds)
        builder = Builder(
            self.__name__, dims, index=index, bounds=bounds, plane_dim=plane_dim,
            fast_math=fast_math,
        )  # fmt: skip
        inlined = self.inlined
        tree = inlined.source.tree
        run_time = [*tree.args.posonlyargs, *tree.args.args][len(self.bound) :]
        if tree.args.vararg or tree.args.kwarg:
            raise KernelError(
                self.__name__, "a kernel names its parameters one by one", got="* or ** arguments",
                where=inlined.source.where(tree),
            )  # fmt: skip
        if len(facts) != len(run_time):
            names = ", ".join(arg.arg for arg in run_time)
            raise LaunchError(
                self.__name__, f"takes {len(run_time)} run-time arguments ({names})",
                got=len(facts), remedy="Parameters after `*` are given by name.",
            )  # fmt: skip
        frame = Frame(inlined.source, self._comptime(tree, comptime), inlined.outer, {})
        if self.bound:
            frame.env[tree.args.args[0].arg] = self.bound[0]
        Parameters(self.__name__, builder, frame).add(run_time, facts)
        expand(builder, frame)
        kernel = builder.finish()
        verify(kernel)
        from burn_cube.passes import simplify

        # Arguments that differ and make the same kernel, 2 and 2.0, share one program.
        return self._texts.setdefault(str(simplify(kernel)), kernel)

    def _comptime(self, tree: ast.FunctionDef, given: dict[str, Any]) -> dict[str, Any]:
        known = {arg.arg for arg in tree.args.kwonlyargs}
        unknown = set(given) - known
        if unknown:
            raise LaunchError(
                self.__name__, f"the compile-time parameters are {', '.join(sorted(known))}"
                if known else "has no compile-time parameters", got=", ".join(sorted(unknown)),
            )  # fmt: skip
        defaults = self.python.__kwdefaults__ or {}
        missing = known - set(given) - set(defaults)
        if missing:
            raise LaunchError(
                self.__name__, "every compile-time parameter has a value",
                got=f"none for {', '.join(sorted(missing))}",
            )  # fmt: skip
        return {**defaults, **given}

    def source(self, target: str, *args: Any, **options: Any) -> str:
        """Return what is compiled for a target, `cpu`, `opencl` or `cuda`; needs no device.

        Arguments are those of `ir`.
        """
        from burn_cube.emit import source_of

        return source_of(target, self.ir(*args, **options))

    def interpret(self, cubes: CubeDim, *args: Any, **options: Any) -> None:
        """Run the kernel in numpy, on numpy arrays, and report what it does wrong.

        Arguments are those of `ir`, after the number of cubes. Arrays are changed in place. With
        `bounds="checked"` an index outside gives 0 or is dropped instead of raising.

        Raises:
            KernelFaultError: an index out of bounds, a race, a failed assertion.
        """
        from burn_cube.interpreter import interpret

        options.setdefault("bounds", "validated")
        interpret(self.ir(*args, **options), _dims(cubes), flat(args))

    def launch(self, client: Client, cubes: CubeDim, *args: Any, **options: Any) -> None:
        """Launch the kernel on a device; returns at once.

        Args:
            client: the device, `burn_cube.client("cpu")`.
            cubes: number of cubes along x, y and z.
            args: buffers of the client and numbers, one for each run-time parameter.
            options: those of `ir`, and the compile-time parameters.

        Raises:
            LaunchError: the arguments do not fit.
            KernelError: the function breaks a rule of the language.
        """
        client.launch(self, _dims(cubes), args, options)


def cube(function: Callable[..., Any]) -> CubeFunction:
    """Make a function of the kernel language.

    Parameters before `*` exist at run time: `Array[F]`, `Tensor[F, 2]`, or a dtype for a scalar.
    Parameters after `*` are compile-time values of any Python type.

    Example:
        >>> from burn_cube import ABSOLUTE_POS, Array, Float
        >>> @cube
        ... def scale(x: Array[Float], out: Array[Float], factor: Float):
        ...     if ABSOLUTE_POS < len(out):
        ...         out[ABSOLUTE_POS] = x[ABSOLUTE_POS] * factor
        >>> import numpy as np
        >>> out = np.zeros(3, np.float32)
        >>> scale.interpret(1, np.arange(3, dtype=np.float32), out, 2.0, cube_dim=4)
        >>> out
        array([0., 2., 4.], dtype=float32)
    """
    return CubeFunction(function)


def _dims(dims: CubeDim) -> tuple[int, int, int]:
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    if not 1 <= len(given) <= 3:
        raise LaunchError("launch", "a grid has one to three dimensions", got=dims)
    x, y, z = (*(int(d) for d in given), 1, 1)[:3]
    return x, y, z
