"""Runtimes: devices, their memory, compiled kernels and launches, behind one small interface."""

from burn_cube.runtime.client import (
    Client as Client,
    DeviceArray as DeviceArray,
    client as client,
    runtimes as runtimes,
)
from burn_cube.runtime.profiling import Profile as Profile, profile as profile
