"""The operation catalogue, its shape and dtype rules, and the recorded program."""

from burn_ir import catalog as catalog
from burn_ir.entry import (
    CATALOG as CATALOG,
    EDGES as EDGES,
    Attr as Attr,
    Catalog as Catalog,
    Entry as Entry,
    Input as Input,
    Spec as Spec,
    register as register,
)
