"""Modules, parameters, buffers, configs and initializers."""

from burn_core import init as init
from burn_core.config import Config as Config, ModuleConfig as ModuleConfig
from burn_core.module import Module as Module, is_training as is_training
from burn_core.parameter import Buffer as Buffer, Parameter as Parameter
from burn_core.tree import walk as walk

__all__ = [
    "Buffer",
    "Config",
    "Module",
    "ModuleConfig",
    "Parameter",
    "init",
    "is_training",
    "walk",
]
