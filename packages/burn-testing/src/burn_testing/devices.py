"""Which devices a test of several uses, on backends that have one and on those that have many."""

from __future__ import annotations

from burn_dispatch import Device, device as find
from burn_std import DeviceError


def another(device: Device, number: int = 1) -> Device:
    """Return another device: that of the same backend with the next number, else one of flex.

    Args:
        device: the device under test.
        number: how far from it; numbers that nobody else uses give a device nobody has used.

    Example:
        >>> another(Device.flex())
        flex:1
    """
    name = device.resource.name
    try:
        return find(f"{name}:{device.index + number}")
    except DeviceError:  # there is no second one
        return find("flex" if number == 1 else f"flex:{number}")
