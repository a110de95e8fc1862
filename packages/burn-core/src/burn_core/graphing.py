"""`burn.graph`: a function as a graph that runs without its Python, and travels as a file.

The function is called once on the device `capture`, which records and runs nothing. What comes out
is the recorded program of burn-ir with its weights: running it needs a backend and no model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_core.capturing import _flat
from burn_core.module import Module
from burn_dispatch import Device
from burn_std import (
    ArgumentError,
    CaptureError,
    DType,
    DTypeError,
    GraphError,
    PluginGroup,
    ShapeError,
    StoreError,
    parse_dtype,
)
from burn_tensor import Tensor, as_tensor, tensor

if TYPE_CHECKING:
    from burn_ir import Program, Runtime

_FORMATS = PluginGroup("burn.store_formats", 2)
_KEY = "burn.graph"
# Parts of a row of the picture, in pixels, and operations that it shows.
_ROW, _WIDTH, _SHOWN = 34, 760, 400


class GraphPort(NamedTuple):
    """An input or output of a graph, or one of its weights.

    Attributes:
        name: of the argument, the parameter, or `output` and a number.
        shape: extents.
        dtype: element type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}{list(self.shape)}"


class Graph:
    """Operations over inputs and weights; made by `burn.graph` or `Graph.load`.

    Attributes:
        inputs: what `run` takes, in order.
        outputs: what it returns, in order.
        weights: arrays of the host by name.
        program: the operations; external k is input k, those behind the inputs are the weights.
        runtime: extents and numbers of the program.
    """

    def __init__(
        self, program: Program, runtime: Runtime, inputs: Sequence[GraphPort],
        outputs: Sequence[tuple[str, int]], weights: dict[str, Any], single: bool = False,
    ) -> None:  # fmt: skip
        from burn_ir import check_program

        specs = check_program(program, runtime)
        self.program = program
        self.runtime = runtime
        self.inputs = tuple(inputs)
        self.weights = weights
        self._slots = [slot for _, slot in outputs]
        self._single = single
        outside = [*inputs, *self._weight_ports()]
        found = [(p.shape, p.dtype) for p in outside]
        known = zip(runtime.shapes, (e.dtype for e in program.externals), strict=True)
        if found != [(tuple(shape), dtype) for shape, dtype in known]:
            raise GraphError("graph", "inputs and weights are the program's externals", got=found)
        if not outputs or (single and len(outputs) > 1):
            raise GraphError("graph", "a graph has outputs, a single one where it says so",
                             got=len(outputs))  # fmt: skip
        ports = []
        for name, slot in outputs:
            if not -len(outside) <= slot < len(specs):
                raise GraphError("graph", "an output is a slot of the program", got=slot)
            at = specs[slot] if slot >= 0 else outside[-1 - slot]
            ports.append(GraphPort(name, tuple(at.shape), at.dtype))
        self.outputs = tuple(ports)
        self._placed: dict[Device, list[Tensor]] = {}

    # ---- running ------------------------------------------------------------------------------

    def run(self, device: Device | str, *arrays: Any) -> Any:
        """Return what the graph gives: a tensor, or a tuple where the function returned several.

        Weights are moved to a device at its first run. Random operations draw from its stream.

        Args:
            device: where it runs.
            *arrays: an input each, in order: numpy arrays, or tensors of any device.

        Raises:
            ArgumentError: there are more or fewer than the graph has inputs.
            ShapeError: one has another shape than the graph was made for.
            DTypeError: one has another dtype.
        """
        from burn_dispatch import device as named

        device = named(device)
        if len(arrays) != len(self.inputs):
            raise ArgumentError(
                "Graph.run", f"takes {len(self.inputs)} inputs",
                got=len(arrays), remedy="They are: " + ", ".join(map(str, self.inputs)) + ".",
            )  # fmt: skip
        given = [
            a.to_device(device) if isinstance(a, Tensor) else as_tensor(a, device=device)
            for a in arrays
        ]
        for port, x in zip(self.inputs, given, strict=True):
            if x.shape != port.shape:
                raise ShapeError(
                    "Graph.run", f"{port.name} has the shape that the graph was made for",
                    got=f"{list(x.shape)} for {list(port.shape)}",
                    remedy="Make a graph of this shape too, or pad.",
                )  # fmt: skip
            if x.dtype is not port.dtype:
                raise DTypeError(
                    "Graph.run", f"{port.name} is {port.dtype.name}", got=x.dtype.name,
                    remedy=f"Convert it with .to(burn.{port.dtype.name}).",
                )  # fmt: skip
        weights = self._placed.get(device)
        if weights is None:
            weights = [tensor(w, device=device) for w in self.weights.values()]
            self._placed[device] = weights
        made = self._walk(device.context, [*given, *weights])
        return made[0] if self._single else tuple(made)

    def _weight_ports(self) -> list[GraphPort]:
        return [
            GraphPort(name, tuple(w.shape), parse_dtype(w.dtype.name))
            for name, w in self.weights.items()
        ]

    def _walk(self, context: Any, outside: list[Any]) -> list[Tensor]:
        slots: list[Any] = []

        def operand(slot: Any) -> Any:
            if slot is None:
                return None
            if isinstance(slot, tuple):
                return [operand(s) for s in slot]
            return slots[slot] if slot >= 0 else outside[-1 - slot]

        for slot, op in self.program.numbered():
            late = [a.name for a in op.entry.attrs if a.kind != "static"]
            values = list(self.runtime.values.get(slot, ()))
            if "key" in late:
                values[late.index("key")] = context.next_key()
            out = getattr(context, op.name)(*map(operand, op.inputs), *op.static, *values)
            slots += out if op.entry.multi else [out]
        return [operand(slot) for slot in self._slots]

    # ---- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: the weights, with the program's wire form as metadata.

        Any reader of such files can read the weights. The file is whole or not there.

        Args:
            path: the file, by custom `.safetensors`.

        Raises:
            StoreError: the disk refuses, or a weight has a dtype that no file holds.
        """
        import json

        kind = _FORMATS.load("safetensors")
        sources = {name: _Source(w) for name, w in self.weights.items()}
        target = os.fspath(path)
        part = f"{target}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                kind.write(file, sources, {_KEY: json.dumps(self.to_wire())})
            os.replace(part, target)
        except OSError as error:
            raise StoreError("Graph.save", "the disk refuses", got=error) from error
        finally:
            if os.path.exists(part):
                os.unlink(part)

    def to_wire(self) -> dict[str, Any]:
        """Return all but the weights as dicts and lists that `json` can write."""
        from burn_ir import program_to_wire, runtime_to_wire

        return {
            "program": program_to_wire(self.program),
            "runtime": runtime_to_wire(self.runtime),
            "inputs": [p.name for p in self.inputs],
            "weights": list(self.weights),
            "outputs": [[p.name, s] for p, s in zip(self.outputs, self._slots, strict=True)],
            "single": self._single,
        }

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Graph:
        """Return the graph of a file that `save` wrote.

        Whatever is wrong with the file is found here, before anything runs.

        Args:
            path: the file.

        Raises:
            StoreError: the file is corrupt, or holds no graph.
            GraphError: the program in it breaks a rule, or needs an operation that is not here.
        """
        from pathlib import Path

        reading = _FORMATS.load("safetensors").open(Path(path), {})
        try:
            text = reading.metadata.get(_KEY)
            if text is None:
                raise StoreError(
                    "Graph.load", "the file holds a graph", got="tensors alone",
                    remedy="Write one with burn.graph(fn, x).save(path).",
                )  # fmt: skip
            return _from_wire(text, reading)
        finally:
            reading.close()

    # ---- showing ------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Return a line for each input, weight, operation and output."""
        names = [*self.inputs, *self._weight_ports()]
        lines = self.program.text(self.runtime).splitlines()
        for k, port in enumerate(names):
            lines[k] += f"  # {'input' if k < len(self.inputs) else 'weight'} {port.name}"
        lines[-1] = "return " + ", ".join(
            f"{p.name} = {_slot(s)}" for p, s in zip(self.outputs, self._slots, strict=True)
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<graph of {len(self.program.ops)} operations: "
            f"{', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"
        )

    def svg(self) -> str:
        """Return a picture: operations from top to bottom, an arc from each to its readers.

        Very long graphs are cut off after some hundred operations, and say so.
        """
        return _picture(self)


class _Spec(NamedTuple):
    """Shape and name of a dtype, as a file format asks for them."""

    shape: tuple[int, ...]
    dtype: str


class _Source:
    """A weight as a file format writes it."""

    param_id = None

    def __init__(self, array: Any) -> None:
        self.spec = _Spec(tuple(array.shape), array.dtype.name)
        self.array = array

    def contiguous(self) -> Any:
        """Return the elements in row-major order."""
        return self.array.copy(order="C")


def _from_wire(text: str, reading: Any) -> Graph:
    import json

    from burn_ir import program_from_wire, runtime_from_wire

    try:
        data = json.loads(text)
        names = data["inputs"], data["weights"], [name for name, _ in data["outputs"]]
        slots = [slot for _, slot in data["outputs"]]
        plain = all(type(n) is str for part in names for n in part)
        parts = data["program"], data["runtime"], bool(data["single"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError("Graph.load", "the file holds a graph", got=repr(error)[:80]) from error
    if not plain or not all(type(s) is int for s in slots) or set(names[1]) - set(reading):
        raise StoreError("Graph.load", "names and slots of a graph are of the file", got=names)
    program, runtime = program_from_wire(parts[0]), runtime_from_wire(parts[1])
    specs = zip(names[0], runtime.shapes, program.externals, strict=False)
    inputs = [GraphPort(name, shape, e.dtype) for name, shape, e in specs]
    weights = {name: reading[name] for name in names[1]}
    outputs = list(zip(names[2], slots, strict=True))
    return Graph(program, runtime, inputs, outputs, weights, parts[2])


def graph(fn: Callable[..., Any], *args: Any) -> Graph:
    """Return what a function does as a graph, without running any of it.

    The function is called once, with arguments that have a shape and a dtype and no value; what it
    reads is a `CaptureError`. Branches of its Python are taken as they are then. The graph is of
    the shapes of the arguments. Tensors that are not arguments are its weights; they must have come
    from the host, as those of `model.to_device(burn.Device.capture())` do.

    Args:
        fn: the function, or a module.
        *args: tensors of `burn.Device.capture()`, or lists, tuples and dicts of them.

    Raises:
        CaptureError: the arguments are of another device, or the function reads a value or a tensor
            that was recorded outside.

    Example:
        >>> device = burn.Device.capture()
        >>> model = burn.nn.Sequential(burn.nn.Linear(3, 2, device="flex"), burn.nn.ReLU())
        >>> found = burn.graph(model.valid().to_device(device), burn.zeros(5, 3, device=device))
        >>> found
        <graph of 2 operations: input0: float32[5, 3] -> output0: float32[5, 2]>
        >>> list(found.weights)
        ['0.weight', '0.bias']
        >>> x = burn.ones(5, 3, device="flex")
        >>> bool((found.run("fusion-flex", x).to_device("flex") == model(x)).all())
        True
    """
    leaves = list(_flat(args))
    devices = {id(t.b.resource): t.b for t in leaves if isinstance(t, Tensor)}
    backend: Any = next((b.resource.backend for b in devices.values()), None)
    if len(devices) != 1 or not hasattr(backend, "symbol"):
        names = ", ".join(sorted(b.resource.name for b in devices.values())) or "no tensor"
        raise CaptureError(
            "graph", "arguments are tensors of one device that captures", got=names,
            remedy="Make them with device=burn.Device.capture(), of the right shape: burn.zeros.",
        )  # fmt: skip
    from burn_core.replaying import filled

    symbols: list[Any] = []

    def symbol(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        symbols.append(backend.symbol(x.v))
        made = x.b.make(symbols[-1])
        return made.require_grad() if x.b.is_autodiff and x.is_require_grad() else made

    given = filled(args, symbol)
    with backend.graph() as holder:
        out = fn(*given)
        program, runtime, outside = backend.program(holder)
        slots = {id(v): -1 - k for k, v in enumerate(outside)}
        slots |= {id(v): v.slot for v in holder.seg.vals}
        found = list(_flat(out))
        wrong = next((x for x in found if not isinstance(x, Tensor)), None)
        if wrong is not None or not found:
            raise CaptureError(
                "graph", "the function returns tensors", got=type(wrong).__name__,
                remedy="Return the tensors alone.",
            )  # fmt: skip
        for x in found:
            if id(x.v) not in slots:  # handed on as it came in
                outside.append(x.v)
                slots[id(x.v)] = -len(outside)
    ports = [GraphPort(n, v.shape, v.dtype) for n, v in zip(_names(fn, args), symbols, strict=True)]
    wanted = [slots[id(x.v)] for x in found]
    return _graph(fn, program, runtime, outside, symbols, ports, wanted, isinstance(out, Tensor))


def _graph(
    fn: Any, program: Program, runtime: Runtime, outside: list[Any], symbols: list[Any],
    ports: list[GraphPort], wanted: list[int], single: bool,
) -> Graph:  # fmt: skip
    """Return the graph with inputs first, then weights, and without what nobody reads."""
    from burn_ir import External, Op, Program, Runtime, axis_classes

    needed = {s for s in wanted if s >= 0}
    kept = []
    for slot, op in reversed(list(program.numbered())):
        if needed.isdisjoint(range(slot, slot + op.outputs)):
            continue
        kept.append((slot, op))
        needed.update(op.reads())
    kept.reverse()
    known = {id(v): k for k, v in enumerate(symbols)}
    read = {*wanted, *(s for _, op in kept for s in op.reads())}
    others = [v for k, v in enumerate(outside) if id(v) not in known and -1 - k in read]
    known |= {id(v): len(symbols) + k for k, v in enumerate(others)}
    place = {-1 - k: -1 - known[id(v)] for k, v in enumerate(outside) if id(v) in known}
    at = 0
    for slot, op in kept:
        place |= {slot + k: at + k for k in range(op.outputs)}
        at += op.outputs

    def moved(slot: Any) -> Any:
        if isinstance(slot, tuple):
            return tuple(map(moved, slot))
        return None if slot is None else place[slot]

    ops = [Op(o.name, tuple(map(moved, o.inputs)), o.static, o.outputs, o.classes) for _, o in kept]
    values = {place[s]: runtime.values[s] for s, _ in kept if s in runtime.values}
    externals = [*symbols, *others]
    slots = [place[s] for s in wanted]
    made = Program(
        ops, [External(v.dtype, axis_classes(v.shape)) for v in externals],
        sorted({s for s in slots if s >= 0}),
    )  # fmt: skip
    titles = _weight_names(fn)
    weights = {titles.get(id(v), f"constant{k}"): v.buf.array for k, v in enumerate(others)}
    outputs = [(f"output{k}", s) for k, s in enumerate(slots)]
    late = Runtime([v.shape for v in externals], values)
    return Graph(made, late, ports, outputs, weights, single)


def _names(fn: Any, args: Any) -> list[str]:
    """Return a name for every tensor among the arguments."""
    import inspect  # costs more than all of this module, and only who makes a graph needs it

    target = fn.forward if isinstance(fn, Module) else fn
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    out: list[str] = []
    for k, arg in enumerate(args):
        name = plain[k] if k < len(plain) else f"input{k}"
        tensors = [x for x in _flat(arg) if isinstance(x, Tensor)]
        single = isinstance(arg, Tensor)
        out += [name if single else f"{name}.{n}" for n in range(len(tensors))]
    return out


def _weight_names(fn: Any) -> dict[int, str]:
    """Return names of parameters and buffers by the identity of their values."""
    out: dict[int, str] = {}
    for prefix, module in _modules_of(fn):
        for path, t in [*module.named_parameters(), *module.named_buffers()]:
            out.setdefault(id(t.v), f"{prefix}{path}")
    return out


def _modules_of(fn: Any) -> Iterator[tuple[str, Module]]:
    owner = getattr(fn, "__self__", fn)
    if isinstance(owner, Module):
        yield "", owner
        return
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    cells = zip(code.co_freevars, fn.__closure__ or (), strict=False)
    found = [(name, cell.cell_contents) for name, cell in cells]
    found += [(n, fn.__globals__[n]) for n in code.co_names if n in fn.__globals__]
    modules = [(name, m) for name, m in found if isinstance(m, Module)]
    alone = len(modules) == 1
    yield from (("" if alone else f"{name}.", m) for name, m in modules)


def _slot(slot: int) -> str:
    return f"%{slot}" if slot >= 0 else f"e{-1 - slot}"


def _picture(graph: Graph) -> str:
    """Return rows of boxes with arcs at their left."""
    from html import escape

    rows: list[tuple[str, str, str]] = [("input", p.name, str(p)) for p in graph.inputs]
    for port in graph._weight_ports():
        size = prod(port.shape) * port.dtype.bits // 8
        rows.append(("weight", port.name, f"{port}, {size} bytes"))
    first = len(rows)
    row_of: dict[int, int] = {-1 - k: k for k in range(first)}
    arcs: list[tuple[int, int]] = []
    lines = graph.program.text(graph.runtime).splitlines()[first:-1]
    numbered = list(graph.program.numbered())
    for (slot, op), line in zip(numbered[:_SHOWN], lines, strict=False):
        arcs += [(row_of[s], len(rows)) for s in dict.fromkeys(op.reads()) if s in row_of]
        row_of |= {slot + k: len(rows) for k in range(op.outputs)}
        rows.append(("op", op.name, line))
    if len(numbered) > _SHOWN:
        rows.append(("cut", f"{len(numbered) - _SHOWN} more operations", ""))
    for port, slot in zip(graph.outputs, graph._slots, strict=True):
        if slot in row_of:
            arcs.append((row_of[slot], len(rows)))
        rows.append(("output", port.name, str(port)))
    fill = {"input": "#cde", "weight": "#eee", "op": "#fff", "output": "#ced", "cut": "#fff"}
    left = 220
    width = _WIDTH - left - 10
    parts = []
    for a, b in arcs:
        y, z = a * _ROW + 28, b * _ROW + 24
        bend = max(left - 12 - 5 * (b - a), 8)
        parts.append(f'<path d="M{left} {y} C{bend} {y} {bend} {z} {left} {z}"/>')
    for k, (kind, name, title) in enumerate(rows):
        y = k * _ROW + 14
        parts.append(
            f'<g><title>{escape(title)}</title><rect x="{left}" y="{y}" width="{width}"'
            f' height="24" fill="{fill[kind]}"/><text x="{left + 8}" y="{y + 16}">'
            f"{escape(title or name)[:90]}</text></g>"
        )
    height = len(rows) * _ROW + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"><style>'
        "path{fill:none;stroke:#888}rect{stroke:#444}text{font:11px monospace}</style>"
        f"{''.join(parts)}</svg>"
    )
