"""The state of a module by path: snapshots, loading, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from burn_core.parameter import Buffer, Parameter
from burn_core.selection import Selector, group_of
from burn_core.tree import aliases, unique, walk
from burn_std import DTypeError, ShapeError, StoreError
from burn_tensor import Tensor


class LoadedKeys(NamedTuple):
    """What `load_state_dict` did not match.

    Attributes:
        missing_keys: names of the module without a value.
        unexpected_keys: names of the state without a place.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def leaves(module: Any) -> dict[str, Parameter | Buffer]:
    """Return parameters and persistent buffers by path, tied ones once."""
    saved = (
        (path, leaf)
        for path, _, _, leaf in walk(module)
        if isinstance(leaf, Parameter) or (isinstance(leaf, Buffer) and leaf.persistent)
    )
    return dict(unique(module, saved))


def state_dict(module: Any) -> dict[str, Tensor]:
    """Return a snapshot of the state by path; lazy parameters without value are left out."""
    return {
        path: leaf.detach()
        for path, leaf in leaves(module).items()
        if not isinstance(leaf, Parameter) or leaf.is_initialized
    }


def load_state_dict(
    module: Any, state: Mapping[str, Tensor], strict: bool, cast: bool
) -> LoadedKeys:
    """Take values by path: everything is checked and moved before the first value changes."""
    own = leaves(module)
    tied = {other: first for other, first in aliases(module).items() if first in own}
    values: dict[str, Tensor] = {}
    unexpected = []
    for key in state:
        if key in own:
            values[key] = state[key]
        elif key in tied:
            values.setdefault(tied[key], state[key])
        else:
            unexpected.append(key)
    missing = [k for k in own if k not in values]
    if strict and (missing or unexpected):
        raise StoreError(
            "load_state_dict", "the names must match",
            got=f"missing {missing}, unexpected {unexpected}",
            remedy="Pass strict=False to load what fits.",
        )  # fmt: skip
    ready = [(own[key], _fitting(key, own[key], value, cast)) for key, value in values.items()]
    for leaf, value in ready:
        if value.dtype is not leaf.dtype:
            leaf.cast(value.dtype)
        leaf.set(value)
    return LoadedKeys(missing, unexpected)


def _fitting(key: str, leaf: Parameter | Buffer, value: Tensor, cast: bool) -> Tensor:
    if not isinstance(value, Tensor):
        raise DTypeError(
            "load_state_dict", f"{key} needs a tensor", got=type(value).__name__,
            remedy="Make one with burn.tensor(...).",
        )  # fmt: skip
    known = not isinstance(leaf, Parameter) or leaf.is_initialized
    if known and value.shape != leaf.shape:
        raise ShapeError(
            "load_state_dict",
            f"the shape of {key} must match",
            got=f"{value.shape} for {leaf.shape}",
        )
    value = value.detach().to_device(leaf.b.device.without_autodiff())
    if leaf.dtype.is_quantized or value.dtype.is_quantized:
        cast = False
    return value.to(leaf.dtype) if cast and value.dtype is not leaf.dtype else value


def average_buffers(module: Any, others: Iterable[Any]) -> None:
    """Give a module and its forks the mean of their float buffers (running statistics).

    Data-parallel training calls it, since every fork has seen other batches. Counts and other
    integers stay. Nothing is read on the host.

    Args:
        module: one of the modules.
        others: forks of it, on any devices.

    Raises:
        StoreError: the buffers' paths differ.

    Example:
        >>> one = burn.nn.BatchNorm1d(1)
        >>> two = one.fork()
        >>> two.running_mean.set(burn.ones(1))
        >>> burn.core.average_buffers(one, [two])
        >>> one.running_mean.item(), two.running_mean.item()
        (0.5, 0.5)
    """
    rows = [
        dict(unique(m, ((path, b) for path, _, _, b in walk(m) if isinstance(b, Buffer))))
        for m in (module, *others)
    ]
    if any(row.keys() != rows[0].keys() for row in rows):
        raise StoreError("average_buffers", "the modules must have the same buffers")
    for path, buffer in rows[0].items():
        if buffer.dtype.is_float:
            home = buffer.b.device
            total = sum((row[path].detach().to_device(home) for row in rows[1:]), buffer.detach())
            mean = total / len(rows)
            for row in rows:
                row[path].set(mean)


class DTypePolicy(Enum):
    """Whose dtype holds after a record is loaded."""

    FROM_RECORD = "from_record"
    CAST_TO_MODULE = "cast_to_module"


class ModuleRecord(Mapping[str, Tensor]):
    """A module's state with the ids of its parameters: a value that later steps leave alone.

    It is a mapping of tensors by path, so `burn.store` saves it like a state dict.

    Attributes:
        ids: id of each parameter by path.
        policy: whose dtype holds after loading.
        partial: loading may leave names of the module without value.
        unused: loading may leave entries of the record without place.

    Example:
        >>> record = burn.nn.Linear(2, 1).into_record()
        >>> sorted(record)
        ['bias', 'weight']
        >>> other = burn.nn.Linear(2, 1)
        >>> other.load_record(record).weight.id == record.ids["weight"]
        True
    """

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        ids: Mapping[str, str] | None = None,
        policy: DTypePolicy = DTypePolicy.FROM_RECORD,
        partial: bool = False,
        unused: bool = False,
    ) -> None:
        self._tensors = dict(tensors)
        self.ids = dict(ids or {})
        self.policy = policy
        self.partial = partial
        self.unused = unused

    @classmethod
    def of(cls, module: Any, select: Selector | None = None) -> ModuleRecord:
        """Return the record of a module.

        Args:
            module: the module.
            select: which parameters; buffers are taken when it is None.
        """
        group = group_of(select)
        kept = {
            path: leaf
            for path, leaf in leaves(module).items()
            if (select is None if isinstance(leaf, Buffer) else group.matches(path, leaf))
        }
        ids = {path: leaf.id for path, leaf in kept.items() if isinstance(leaf, Parameter)}
        return cls({path: leaf.detach() for path, leaf in kept.items()}, ids)

    def with_dtype_policy(self, policy: DTypePolicy) -> ModuleRecord:
        """Return the record with another policy.

        Args:
            policy: whose dtype holds after loading.
        """
        return ModuleRecord(self._tensors, self.ids, policy, self.partial, self.unused)

    def cast_to_module_dtype(self) -> ModuleRecord:
        """Return the record whose values take the module's dtypes when loaded."""
        return self.with_dtype_policy(DTypePolicy.CAST_TO_MODULE)

    def allow_partial(self) -> ModuleRecord:
        """Return the record that may leave names of the module without value."""
        return ModuleRecord(self._tensors, self.ids, self.policy, True, self.unused)

    def allow_unused(self) -> ModuleRecord:
        """Return the record that may have entries without place."""
        return ModuleRecord(self._tensors, self.ids, self.policy, self.partial, True)

    def validate(self, module: Any) -> LoadedKeys:
        """Return what would not match; shapes are checked too.

        Args:
            module: where the record would be loaded.

        Raises:
            StoreError: names do not fit and the record does not allow it.
            ShapeError: a shape differs.
        """
        own = leaves(module)
        missing = [k for k in own if k not in self._tensors]
        unexpected = [k for k in self._tensors if k not in own]
        refused = (missing if not self.partial else []) + (unexpected if not self.unused else [])
        if refused:
            raise StoreError(
                "load_record", "record and module must fit",
                got=f"missing {missing}, unused {unexpected}",
                remedy="Use record.allow_partial() or record.allow_unused().",
            )  # fmt: skip
        for key in own.keys() & self._tensors.keys():
            _fitting(key, own[key], self._tensors[key], False)
        return LoadedKeys(missing, unexpected)

    def apply(self, module: Any) -> LoadedKeys:
        """Load the record into a module; nothing is changed if it does not fit.

        Args:
            module: whose values, and parameter ids, become the record's.

        Raises:
            StoreError, ShapeError: as for `validate`.
        """
        keys = self.validate(module)
        cast = self.policy is DTypePolicy.CAST_TO_MODULE
        load_state_dict(module, self._tensors, False, cast)
        for path, leaf in leaves(module).items():
            if isinstance(leaf, Parameter) and path in self.ids:
                leaf.take_id(self.ids[path])
        return keys

    def __getitem__(self, key: str) -> Tensor:
        return self._tensors[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"ModuleRecord({len(self)} tensors)"
