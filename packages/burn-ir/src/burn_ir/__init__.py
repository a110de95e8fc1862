"""The operation catalogue, its shape and dtype rules, and the recorded program.

Programs, their wire form and the scalar language load on first use: most processes never look
at a program, and `import burn` should not pay for it.
"""

from typing import TYPE_CHECKING, Any

from burn_ir import catalog as catalog
from burn_ir.entry import (
    CATALOG as CATALOG,
    EDGES as EDGES,
    FLAGS as FLAGS,
    OPENS as OPENS,
    Attr as Attr,
    Catalog as Catalog,
    Entry as Entry,
    Input as Input,
    Spec as Spec,
    register as register,
)
from burn_ir.rules.basic import (
    broadcast_shapes as broadcast_shapes,
    check_dtype as check_dtype,
    dim_index as dim_index,
)

if TYPE_CHECKING:
    from burn_ir.program import (
        External as External,
        Op as Op,
        Program as Program,
        Runtime as Runtime,
        axis_classes as axis_classes,
        check_program as check_program,
    )
    from burn_ir.scalar import (
        INTRINSICS as INTRINSICS,
        Node as Node,
        Step as Step,
        bind as bind,
        evaluate as evaluate,
        parse as parse,
        steps as steps,
    )
    from burn_ir.wire import (
        program_from_wire as program_from_wire,
        program_to_wire as program_to_wire,
        runtime_from_wire as runtime_from_wire,
        runtime_to_wire as runtime_to_wire,
    )

_LAZY = {
    **dict.fromkeys(
        ("External", "Op", "Program", "Runtime", "axis_classes", "check_program"), "program"
    ),
    **dict.fromkeys(("INTRINSICS", "Node", "Step", "bind", "evaluate", "parse", "steps"), "scalar"),
    **dict.fromkeys(
        ("program_from_wire", "program_to_wire", "runtime_from_wire", "runtime_to_wire"), "wire"
    ),
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'burn_ir' has no attribute {name!r}")
    from burn_std import load_object

    found = globals()[name] = load_object(f"burn_ir.{module}:{name}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
