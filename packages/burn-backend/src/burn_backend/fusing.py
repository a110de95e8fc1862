"""What a recorder asks of a backend that puts several operations into one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from burn_ir import Entry
from burn_std import DType

# What a value of a group of rows is: `full` has an element for each place of a row, `kept` one for
# each row and extents of 1 in place of the row's dims, `cut` the same without those dims.
Form = Literal["full", "kept", "cut"]

# Operations over rows that one kernel computes together with elementwise ones before and behind.
CORES = ("softmax", "log_softmax", "layer_norm", "rms_norm")

# Operations that draw random numbers, inside a kernel of elementwise ones that read them.
LEAVES = ("uniform", "normal")

# Operations whose result is put together of pieces, each a part of one of their inputs, or zeros.
JOINTS = ("cat", "slice_assign", "slice_backward")

# Names the part of a chain that stands for the tensor on which it is computed.
GIVEN = "given"

# Ends the static attributes of a `sum` over the last dims that is the first of two stages of one
# over the first dim too.
STAGED = "staged"


class Part(NamedTuple):
    """One operation of a fused kernel.

    Attributes:
        name: the operation.
        inputs: per input a part of the group by its number, an outside tensor as -1 - number, or
            None for one that is absent.
        static: its static attributes.
        numbers: how many run-time values it takes.
        lead: dtype of the input that leads the promotion.
        dtype: of its result.
        form: what its result is.
    """

    name: str
    inputs: tuple[int | None, ...]
    static: tuple[Any, ...]
    numbers: int
    lead: DType
    dtype: DType
    form: Form = "full"


class Group(NamedTuple):
    """Operations that one kernel computes, and numbers (`full` of rank 0) that they read.

    Without rows, all are elementwise, or views between elementwise ones: `permute`, `reshape`,
    `squeeze`, `unsqueeze`, `flip`, `slice`, `select` and `expand`. Without views every part that is
    no number has the shape to which the outside tensors broadcast. With views each elementwise part
    has the shape to which its inputs broadcast; those of the last space, to which all views lead,
    have the shape of the kernel. With rows, the last `rows` dims of one shape are a row; parts are

    - elementwise operations on `full`, `kept` or `cut` values, read along a result as broadcasting
      has it;
    - reductions of a whole row: `full` to `kept` or `cut`;
    - views: `expand` from `kept` to `full`; `squeeze`, `unsqueeze` and `reshape` between `kept`
      and `cut`;
    - `gather` along the last dim, of one element per row (`rows` is 1): `kept`. That index and
      rows fit each other is known;
    - one of `CORES` over the row's dims, from a `full` value to another; its parameters are from
      outside. What it gives beside is a part named `output`, `kept`, whose one input is the
      operation and whose static attribute the number of the output. All others are elementwise and
      `full` then.

    Without rows a group may have parts of `JOINTS`; inputs of a `cat` are the tensors that it
    joins. All wanted results have one shape then, that of the last space; from there to a joint
    lead elementwise operations and joints, views stand behind joints alone. A `full` of some rank
    that joints read has two run-time values, its shape and the number.

    Without views between elementwise operations a group may have parts of `LEAVES`, which have no
    inputs and the shape of the kernel, or are `full`; all their run-time values are among those of
    the group.

    Without rows and views a group may have one `conv`, whose inputs are outside tensors; what it
    makes has the shape of the kernel and is no wanted result. Such a group has one result.

    With columns (`rows` is negative) the first dims are reduced in place of the last, and no `full`
    value is computed from one that is not.

    Attributes:
        parts: operations, each after those that it reads.
        outside: dtypes of the tensors from outside.
        outputs: the parts whose results are wanted; no views.
        rows: how many dims a row has, 0 where there are none, negative for columns.
        cut: which outside tensors are read along shapes without the row's dims.
        through: with views, for each output the views by which its elements are read in the end,
            by their number, the last one first; none of them leaves elements out.
    """

    parts: tuple[Part, ...]
    outside: tuple[DType, ...]
    outputs: tuple[int, ...]
    rows: int = 0
    cut: tuple[bool, ...] = ()
    through: tuple[tuple[int, ...], ...] = ()


# Outside payloads and then the run-time values of all parts, in order, to the wanted results.
Fused = Callable[..., tuple[Any, ...]]


class Fuser(Protocol):
    """A backend's side of fusion."""

    @property
    def first_stage(self) -> Callable[..., Any] | None:
        """The first of two launches of a sum over the first and the last dims, None for one.

        It takes a tensor, the last dims, True, the dtype and `STAGED`. A sum of what it returns
        over all those dims has the bits of the sum at once.
        """

    @property
    def losses(self) -> Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]:
        """Losses in kernels that have more than the loss alone.

        By the name of the loss: a function that returns the loss and something to hand on (None
        where it is given `keep=False`), and one that takes this in front of the arguments of the
        loss's `_backward`. Both take two chains first, or None: what makes the scores of the tensor
        that stands in their place (the first argument of the loss), and what is made of the
        gradient (the forward has none). A chain is a group of elementwise parts with the part
        `GIVEN` in front, its outside tensors, which are of rank 0, and its numbers. The bits are
        those of the operations. The two functions may be called with other numbers, but with the
        same tensors.
        """

    @property
    def tails(self) -> Mapping[str, Callable[..., Any]]:
        """Operations whose last kernel can compute elementwise operations behind it.

        By name: a function that takes a tail and then the arguments of the operation, and returns
        the wanted results of the tail and the operation's outputs but for the first. A tail is a
        group of elementwise parts in which the part `GIVEN` stands for the first output, its
        outside tensors, and its numbers.
        """

    def takes(self, entry: Entry, dtypes: Sequence[DType], out: DType) -> bool:
        """Return whether an operation can be a part, for dtypes of its inputs.

        Asked of elementwise operations, of reductions, of `CORES`, of `LEAVES`, of `JOINTS`, of
        `gather`, and of `conv`.
        """

    def fuse(self, group: Group, apart: Fused) -> Fused:
        """Return the kernel of a group.

        Args:
            group: what it computes.
            apart: the same with rows, views, `LEAVES`, `JOINTS` and `conv` left to their own
                kernels; taken where shapes or layouts show that one kernel would be slower, or
                would give other bits; then the kernel's attribute `parted` is True, else False. A
                group with none of them has no need of it.
        """
