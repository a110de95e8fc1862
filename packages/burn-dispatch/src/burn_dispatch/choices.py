"""What devices are configured with and chosen by."""

from __future__ import annotations

from typing import Any

from burn_std import DeviceError, DType, DTypeError


class DeviceConfig:
    """Default dtypes of a device, and how exact its products are.

    Attributes:
        default_float: dtype of Python floats, or None to leave it.
        default_int: dtype of Python ints, or None to leave it.
        tf32: products and convolutions of float32 may read their factors as tf32, which keeps ten
            bits of mantissa in place of 23; sums stay float32. It is a permission: a device
            without tensor cores computes in float32 all the same.

    Example:
        >>> config = DeviceConfig(tf32=True)
        >>> burn.device("flex:61").configure(config).settings()["tf32"]
        True
    """

    __slots__ = ("default_float", "default_int", "tf32")

    def __init__(
        self,
        default_float: DType | None = None,
        default_int: DType | None = None,
        tf32: bool = False,
    ) -> None:
        if default_float is not None and not _is(default_float, "is_float"):
            raise DeviceError("configure", "default_float is a float dtype", got=default_float)
        if default_int is not None and not _is(default_int, "is_int"):
            raise DeviceError("configure", "default_int is an integer dtype", got=default_int)
        if not isinstance(tf32, bool):
            raise DeviceError("configure", "tf32 is True or False", got=repr(tf32))
        self.default_float = default_float
        self.default_int = default_int
        self.tf32 = tf32

    @classmethod
    def of(cls, config: Any) -> DeviceConfig:
        """Return a config made of one dtype or a pair.

        Raises:
            DeviceError: neither, or not one float and one integer dtype.
        """
        if isinstance(config, DeviceConfig):
            return config
        given = config if isinstance(config, (tuple, list)) else (config,)
        floats = [d for d in given if _is(d, "is_float")]
        ints = [d for d in given if _is(d, "is_int")]
        if not given or len(floats) > 1 or len(ints) > 1 or len(floats) + len(ints) < len(given):
            raise DeviceError(
                "configure", "takes a DeviceConfig, a dtype, or a pair (float, integer)",
                got=repr(config),
            )  # fmt: skip
        return cls(floats[0] if floats else None, ints[0] if ints else None)


class DeviceFilter:
    """Which kinds of device to list; join with `|`.

    Example:
        >>> (DeviceFilter("flex") | DeviceFilter("cuda")).admits("cuda")
        True
    """

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)
        given: tuple[Any, ...] = names
        wrong = [n for n in given if not isinstance(n, str)]
        if wrong:
            raise DTypeError("DeviceFilter", "takes names of backends", got=repr(wrong[0]))

    def __or__(self, other: DeviceFilter) -> DeviceFilter:
        if not isinstance(other, DeviceFilter):
            return NotImplemented
        return DeviceFilter(*self.names, *other.names)

    def admits(self, name: str) -> bool:
        """Return whether a backend's name is among those asked for."""
        return name in self.names


def _is(dtype: Any, kind: str) -> bool:
    return isinstance(dtype, DType) and bool(getattr(dtype, kind))
