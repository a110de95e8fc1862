"""Devices, contexts, the generator of functions, discovery and transfers."""

from burn_backend import plain_scalar as plain_scalar
from burn_dispatch.choices import DeviceConfig as DeviceConfig, DeviceFilter as DeviceFilter
from burn_dispatch.context import Context as Context
from burn_dispatch.device import (
    BACKENDS as BACKENDS,
    DECORATORS as DECORATORS,
    Device as Device,
    Devices as Devices,
    device as device,
    device_report as device_report,
    resource as resource,
    resources as resources,
    seed_all as seed_all,
)
from burn_dispatch.generator import source_of as source_of
from burn_dispatch.profiling import (
    Event as Event,
    MemorySample as MemorySample,
    Profile as Profile,
    place_of as place_of,
    profile as profile,
)
from burn_dispatch.resource import Resource as Resource
from burn_dispatch.scopes import (
    Scope as Scope,
    autocast as autocast,
    current as _current,
    enable_grad as enable_grad,
    no_fusion as no_fusion,
    no_grad as no_grad,
    scope as scope,
)
from burn_dispatch.slow import too_large as too_large
from burn_dispatch.transfer import to_device as to_device

current_scope = _current
