"""Modules, parameters, buffers, configs, records, selections, adapters and initializers.

Captures, graphs, explanations and reports of memory load on first use.
"""

from typing import TYPE_CHECKING

from burn_core import init
from burn_core.behaviour import (
    is_training,
    updates_statistics,
)
from burn_core.calls import explain_arguments
from burn_core.config import Config
from burn_core.constructor import ModuleConfig
from burn_core.module import Module, call_in_turn, source_of
from burn_core.parameter import Buffer, Parameter, id_text
from burn_core.reparameterization import (
    Lora,
    Quantizer,
    Reparameterization,
    apply_lora,
    merge_lora,
    quantize_weights,
    reparameterize,
    reparameterized,
    restore_weight,
)
from burn_core.selection import ParamGroup, Selector, group_of
from burn_core.state import (
    DTypePolicy,
    LoadedKeys,
    ModuleRecord,
    average_buffers,
)
from burn_core.summary import Summary, SummaryRow
from burn_core.tree import any_autodiff, items_of, leaves_of, unique, walk

if TYPE_CHECKING:
    from burn_core.capturing import Capture, capture
    from burn_core.explaining import Explanation, KernelRow, PlanReport, explain
    from burn_core.graphing import Graph, GraphPort, graph
    from burn_core.memory import MemoryHolder, MemoryReport, MemoryUse, memory_report
else:
    _LAZY = {
        **dict.fromkeys(("Capture", "capture"), "capturing"),
        **dict.fromkeys(("Explanation", "KernelRow", "PlanReport", "explain"), "explaining"),
        **dict.fromkeys(("Graph", "GraphPort", "graph"), "graphing"),
        **dict.fromkeys(("MemoryHolder", "MemoryReport", "MemoryUse", "memory_report"), "memory"),
    }

    def __getattr__(name: str) -> object:
        """Import a part at its first use."""
        module = _LAZY.get(name)
        if module is None:
            raise AttributeError(f"module 'burn_core' has no attribute {name!r}")
        from burn_std import load_object

        globals()[name] = found = load_object(f"burn_core.{module}:{name}")
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY})


__all__ = [
    "Buffer",
    "Capture",
    "Config",
    "DTypePolicy",
    "Explanation",
    "Graph",
    "GraphPort",
    "KernelRow",
    "LoadedKeys",
    "Lora",
    "MemoryHolder",
    "MemoryReport",
    "MemoryUse",
    "Module",
    "ModuleConfig",
    "ModuleRecord",
    "ParamGroup",
    "Parameter",
    "PlanReport",
    "Quantizer",
    "Reparameterization",
    "Selector",
    "Summary",
    "SummaryRow",
    "any_autodiff",
    "apply_lora",
    "average_buffers",
    "call_in_turn",
    "capture",
    "explain",
    "explain_arguments",
    "graph",
    "group_of",
    "id_text",
    "init",
    "is_training",
    "items_of",
    "leaves_of",
    "memory_report",
    "merge_lora",
    "quantize_weights",
    "reparameterize",
    "reparameterized",
    "restore_weight",
    "source_of",
    "unique",
    "updates_statistics",
    "walk",
]
