"""Weights that are computed from others at each use: LoRA adapters, quantised weights, both.

The module's attribute gives the effective weight; base and adapters are its parameters, the base
under the old path, so that checkpoints of the plain model still fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from burn_core.parameter import Parameter
from burn_core.selection import ParamGroup, Selector, group_of
from burn_core.tree import REPARAMETERIZED, computes
from burn_std import ArgumentError, BurnError, DType, QDType
from burn_tensor import Tensor, randn, zeros

M = TypeVar("M")


class Reparameterization:
    """A weight as a function of a base and other tensors.

    Attributes:
        base: the parameter that the weight was.
        dtype: float dtype of the effective weight.
        was_trained: whether the base was trained before.
    """

    def __init__(self, base: Parameter, dtype: DType, was_trained: bool) -> None:
        self.base = base
        self.dtype = dtype
        self.was_trained = was_trained

    def tensors(self) -> dict[str, Tensor]:
        """Return what it consists of by name; the base has the empty one."""
        return {"": self.base}

    def named(self, name: str) -> Iterator[tuple[str, Tensor]]:
        """Yield (path below the module, tensor) of what it consists of.

        The base keeps the path of the weight, so checkpoints of the plain model still fit.

        Args:
            name: attribute that the weight is.
        """
        for part, tensor in self.tensors().items():
            yield (f"{name}.{part}" if part else name), tensor

    def copied(self, copy: Callable[[Any], Any]) -> Any:
        """Return the same with every tensor copied by a function.

        Args:
            copy: takes and returns a tensor.
        """
        made = object.__new__(type(self))
        made.__dict__.update(
            {k: copy(v) if isinstance(v, Tensor) else v for k, v in self.__dict__.items()}
        )
        return made

    def plain_base(self) -> Tensor:
        """Return the base as floats."""
        base = self.base
        return base.dequantize(self.dtype) if base.dtype.is_quantized else base

    def materialize(self) -> Tensor:
        """Return the effective weight."""
        return self.plain_base()


class LoraWeight(Reparameterization):
    """base + scale b a, with a base that is not trained.

    Attributes:
        lora_a: the inner factor, [rank, in].
        lora_b: the outer factor, [out, rank].
        scale: alpha / rank.
    """

    def __init__(
        self,
        base: Parameter,
        dtype: DType,
        was_trained: bool,
        a: Parameter,
        b: Parameter,
        scale: float,
    ) -> None:
        super().__init__(base, dtype, was_trained)
        self.lora_a = a
        self.lora_b = b
        self.scale = scale

    def tensors(self) -> dict[str, Tensor]:
        """Return base and factors."""
        return {"": self.base, "lora_a": self.lora_a, "lora_b": self.lora_b}

    def delta(self) -> Tensor:
        """Return what the adapter adds: scale b a."""
        return (self.lora_b @ self.lora_a) * self.scale

    def materialize(self) -> Tensor:
        """Return base + scale b a."""
        return self.plain_base() + self.delta().to(self.dtype)


def reparameterize(module: Any, name: str, wrap: Callable[[Parameter], Reparameterization]) -> None:
    """Let an attribute of a module be computed from other tensors at each use.

    Args:
        module: the module.
        name: attribute that is a parameter.
        wrap: makes the reparameterization of it; the parameter is its base.

    Raises:
        ArgumentError: the attribute is no parameter with a value, or is computed already.

    Example:
        >>> layer = burn.nn.Linear(1, 1)
        >>> wrap = lambda p: burn.core.Reparameterization(p, p.dtype, p.requires_grad)
        >>> burn.core.reparameterize(layer, "weight", wrap)
        >>> list(burn.core.reparameterized(layer))
        ['weight']
    """
    p = module.__dict__.get(name)
    if not isinstance(p, Parameter) or not p.is_initialized:
        computed = name in module.__dict__.get(REPARAMETERIZED, ())
        raise ArgumentError(
            "reparameterize", "the attribute is a parameter that has a value",
            got=f"{type(module).__name__}.{name}, "
            + ("which is computed already" if computed else f"a {type(p).__name__}"),
        )  # fmt: skip
    _computed(module, name, wrap(p))


def _computed(module: Any, name: str, made: Reparameterization) -> None:
    del module.__dict__[name]
    module.__dict__.setdefault(REPARAMETERIZED, {})[name] = made
    computes(type(module), [name])


def reparameterized(module: Any) -> dict[str, Reparameterization]:
    """Return what is computed in a module itself, by attribute.

    Args:
        module: the module; those below it are not asked.

    Example:
        >>> burn.core.reparameterized(burn.nn.Linear(1, 1))
        {}
    """
    return dict(module.__dict__.get(REPARAMETERIZED, {}))


def restore_weight(module: Any, name: str, computed: bool = True) -> None:
    """Make a computed attribute a parameter again: its base, with identity and id.

    Args:
        module: the module.
        name: the attribute.
        computed: the parameter takes the computed value; else it keeps that of the base.

    Raises:
        ArgumentError: the attribute is not computed.

    Example:
        >>> layer = burn.nn.parametrizations.weight_norm(burn.nn.Linear(1, 1))
        >>> burn.core.restore_weight(layer, "weight")
        >>> list(layer.state_dict())
        ['bias', 'weight']
    """
    made = module.__dict__.get(REPARAMETERIZED, {})
    if name not in made:
        raise ArgumentError(
            "restore_weight", "the attribute is computed", got=f"{type(module).__name__}.{name}"
        )
    base = made[name].base
    if computed:
        base.set(made[name].materialize().detach())
    module.__dict__[name] = base
    del made[name]
    if not made:
        del module.__dict__[REPARAMETERIZED]


class Quantizer:
    """How weights are quantised.

    Args:
        dtype: the scheme, made by `burn.quantized(...)`.
        select: which parameters; float weights of at least two dims if None.
        calibration: `minmax` takes the whole range of a weight (or block), `absmean` the mean of
            absolute values as its range, so that outliers saturate; symmetric schemes only.

    Raises:
        ArgumentError: the scheme or calibration is unknown or they do not go together.

    Example:
        >>> model = burn.nn.Linear(4, 2)
        >>> _ = burn.core.quantize_weights(model, burn.core.Quantizer(burn.quantized(8)))
        >>> [(path, p.dtype) for path, p in model.named_parameters()]
        [('bias', burn.float32), ('weight', burn.qint8_sym_tensor)]
        >>> model(burn.ones(1, 4)).shape
        (1, 2)
    """

    def __init__(
        self, dtype: DType, select: Selector | None = None, calibration: str = "minmax"
    ) -> None:
        if not isinstance(dtype, QDType):
            raise ArgumentError(
                "Quantizer", "dtype is a quantised scheme", got=dtype,
                remedy="Write burn.quantized(8).",
            )  # fmt: skip
        if calibration not in ("minmax", "absmean"):
            raise ArgumentError("Quantizer", "calibration is minmax or absmean", got=calibration)
        if calibration == "absmean" and not dtype.symmetric:
            raise ArgumentError("Quantizer", "absmean goes with symmetric schemes", got=dtype)
        self.dtype: QDType = dtype
        self.group = _matrices() if select is None else group_of(select)
        self.calibration = calibration

    def quantize(self, value: Tensor) -> Tensor:
        """Return a weight in the scheme.

        Args:
            value: floats.
        """
        if self.calibration == "minmax":
            return value.quantize(self.dtype)
        block = self.dtype.block
        if block:
            parts = value.reshape(*value.shape[:-1], value.shape[-1] // block, block)
            mean = parts.abs().mean(-1)
        else:
            mean = value.abs().mean()
        return value.quantize(self.dtype, (mean / self.dtype.qmax).clamp(min=1e-12))


class Lora:
    """Low-rank adapters: W + alpha / rank B A, with W frozen, A random and B zero.

    Args:
        rank: rows of A.
        alpha: strength; the rank if None.
        select: which parameters; all float matrices if None. Only matrices are adapted.
        std: standard deviation of A; 1 / rank if None.
        dtype: of the adapters; the weight's if None.
        quantizer: quantises the frozen weight (QLoRA); its own selection is not asked.

    Raises:
        ArgumentError: rank is not positive.

    Example:
        >>> model = burn.nn.Sequential(burn.nn.Linear(8, 4))
        >>> _ = burn.core.apply_lora(model.freeze(), burn.core.Lora(rank=2))
        >>> [(path, p.requires_grad) for path, p in model.named_parameters()][1:]
        [('0.weight', False), ('0.weight.lora_a', True), ('0.weight.lora_b', True)]
        >>> _ = burn.core.merge_lora(model)
        >>> [path for path, _ in model.named_parameters()]
        ['0.bias', '0.weight']

    Source: Hu et al., LoRA, 2021; Dettmers et al., QLoRA, 2023
    """

    def __init__(
        self,
        rank: int,
        alpha: float | None = None,
        select: Selector | None = None,
        std: float | None = None,
        dtype: DType | None = None,
        quantizer: Quantizer | None = None,
    ) -> None:
        if rank < 1:
            raise ArgumentError("Lora", "rank is positive", got=rank)
        self.rank = rank
        self.alpha = float(rank if alpha is None else alpha)
        self.group = group_of(select)
        self.std = 1.0 / rank if std is None else std
        self.dtype = dtype
        self.quantizer = quantizer

    def wrap(self, p: Parameter) -> LoraWeight:
        """Return the adapted form of a weight; the weight itself becomes the base.

        Args:
            p: a float matrix.
        """
        out, inner = p.shape
        dtype = self.dtype or p.dtype
        device = p.b.device
        a = Parameter(randn(self.rank, inner, dtype=dtype, device=device) * self.std)
        b = Parameter(zeros(out, self.rank, dtype=dtype, device=device))
        was_trained, kept = p.requires_grad, p.dtype
        p.set_requires_grad(False)
        if self.quantizer is not None:
            _rebind_dtype(p, self.quantizer.quantize(p.detach()))
        return LoraWeight(p, kept, was_trained, a, b, self.alpha / self.rank)


def apply_lora(model: M, lora: Lora) -> M:
    """Add adapters to the chosen matrices of a module, in place; return the module.

    Args:
        model: the module.
        lora: which and how.

    Raises:
        ArgumentError: nothing was chosen.
        BurnError: a chosen weight is adapted already, or is no attribute of a module.
    """
    return _reparameterize(model, "apply_lora", lora.group & _matrices(), lora.wrap)


def quantize_weights(model: M, quantizer: Quantizer) -> M:
    """Put the chosen weights of a module into a quantised dtype, frozen, in place; return it.

    They are dequantised where they are used.

    Args:
        model: the module.
        quantizer: which and how.

    Raises:
        ArgumentError: nothing was chosen.
    """

    def wrap(p: Parameter) -> Reparameterization:
        made = Reparameterization(p, p.dtype, p.requires_grad)
        p.set_requires_grad(False)
        _rebind_dtype(p, quantizer.quantize(p.detach()))
        return made

    floats = ParamGroup.predicate(lambda path, p: p.is_initialized and p.dtype.is_float)
    return _reparameterize(model, "quantize_weights", quantizer.group & floats, wrap)


def merge_lora(model: M) -> M:
    """Fold adapters into their weights, in place; return the module.

    The weights keep identity and id and are trained again if they were; quantised ones become
    floats.

    Args:
        model: a module with adapters anywhere.
    """
    for owner in _modules(model):
        made = owner.__dict__.get(REPARAMETERIZED, {})
        for name in [n for n, r in made.items() if isinstance(r, LoraWeight)]:
            weight: LoraWeight = made[name]
            base = weight.base
            if name not in owner.__dict__:
                value = weight.materialize().detach()
                # Tied owners share the adapter: the second finds the base merged already.
                if not getattr(weight, "merged", False):
                    _rebind_dtype(base, value)
                    base.set_requires_grad(weight.was_trained)
                    weight.__dict__["merged"] = True
                owner.__dict__[name] = base
            del made[name]
        if not made:
            owner.__dict__.pop(REPARAMETERIZED, None)
    return model


def _rebind_dtype(p: Parameter, value: Tensor) -> None:
    """Give a parameter a value of another dtype, keeping its identity."""
    p._bind(value.v)
    p._mark()


def _matrices() -> ParamGroup:
    return ParamGroup.predicate(
        lambda path, p: (
            p.is_initialized and p.dtype.is_float and len(p.shape) == 2 and ".lora_" not in path
        )
    )


def _modules(model: Any) -> Iterator[Any]:
    yield from list(model.modules())


def _reparameterize(
    model: M, op: str, group: ParamGroup, wrap: Callable[[Parameter], Reparameterization]
) -> M:
    chosen: dict[int, tuple[str, Parameter]] = {
        id(p): (path, p)
        for path, p in model.select(group)  # type: ignore[attr-defined]
    }
    if not chosen:
        raise ArgumentError(op, "the selection holds no weight that can be wrapped")
    places: dict[int, list[tuple[Any, str]]] = {key: [] for key in chosen}
    for owner in _modules(model):
        for name, value in owner.__dict__.items():
            if id(value) in places:
                places[id(value)].append((owner, name))
    for key, (path, _) in chosen.items():
        if not places[key]:
            raise BurnError(
                op, "only weights that are attributes of modules, not wrapped yet, can be wrapped",
                got=path,
            )  # fmt: skip
    for key, (_, p) in chosen.items():
        made = wrap(p)
        for owner, name in places[key]:
            _computed(owner, name, made)
    return model
