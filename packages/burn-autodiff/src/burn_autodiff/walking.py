"""The straight path of a backward pass, which a backend may compile (see `Backend.compiled`).

It walks nodes whose rules make one gradient for each input, and hands any other back to the walk in
`tape`, with everything as it was before that node: so what is rare is written there alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from burn_autodiff.tape import (
    FREED,
    LEAF,
    Node,
    RuleCall,
    Walk,
    gradients_of,
    sum_to,
)
from burn_autodiff.windows import Windows
from burn_backend import TENSOR_CLASS

Walked = Callable[[Walk], Node | None]


def walking() -> Walked:
    """Return what walks from the youngest node on, to the end or to a node that it hands back."""
    tensor = TENSOR_CLASS.cls
    push, pop = heapq.heappush, heapq.heappop

    def walked(walk: Walk) -> Node | None:
        heap, cotangents, found = walk.heap, walk.cotangents, walk.found
        # A node that is kept beside the heap, which a chain never needs.
        first: Any = None
        while True:
            if first is not None and (not heap or -first.seq < heap[0][0]):
                node = first
                first = None
            elif heap:
                node = pop(heap)[1]
            else:
                return None
            call = node.call
            g = cotangents[node]
            if call is LEAF and g.__class__ is tensor:
                found[node] = g
                del cotangents[node]
                continue
            saved, parents, shapes = node.saved, node.parents, node.shapes
            if (
                not call.plain
                or saved is FREED
                or g.__class__ is Windows
                or len(saved) > 3
                or len(parents) > 3
            ):
                if first is not None:
                    push(heap, (-first.seq, first))
                return node  # type: ignore[no-any-return]
            ops = call.ops
            if ops is None:
                ops = call.plain_ops()
            rule = RuleCall()
            rule.ops = ops
            rule.node = node
            rule.create_graph = False
            shape = g.v.shape
            if len(parents) == 1:
                if shapes is None:
                    shapes = (shape,)
                rule.need = (parents[0] is not None,)
            elif len(parents) == 2:
                if shapes is None:
                    shapes = (shape, shape)
                rule.need = (parents[0] is not None, parents[1] is not None)
            else:
                if shapes is None:
                    shapes = (shape, shape, shape)
                rule.need = (parents[0] is not None, parents[1] is not None, parents[2] is not None)
            rule.shapes = shapes
            one: Any = None
            other: Any = None
            third: Any = None
            if len(saved) > 0 and saved[0] is not None:
                t = tensor()
                t.b = ops.base
                t.v = saved[0]
                t.node = None
                one = t
            if len(saved) > 1 and saved[1] is not None:
                t = tensor()
                t.b = ops.base
                t.v = saved[1]
                t.node = None
                other = t
            if len(saved) > 2 and saved[2] is not None:
                t = tensor()
                t.b = ops.base
                t.v = saved[2]
                t.node = None
                third = t
            walk.at = call
            if len(saved) == 0:
                out = call.straight(rule, g)
            elif len(saved) == 1:
                out = call.straight(rule, g, one)
            elif len(saved) == 2:
                out = call.straight(rule, g, one, other)
            else:
                out = call.straight(rule, g, one, other, third)
            walk.at = None
            if out.__class__ is not tuple or len(out) != len(parents):
                out = gradients_of(call, out, parents)
            del cotangents[node]
            for parent, grad, wants in zip(parents, out, shapes):  # noqa: B905 - as many
                if parent is None or grad is None:
                    continue
                if grad.v.shape != wants:
                    grad = sum_to(ops, grad, wants)
                have = cotangents.get(parent)
                if have is None:
                    cotangents[parent] = grad
                    if first is None:
                        first = parent
                    else:
                        push(heap, (-parent.seq, parent))
                elif have.__class__ is Windows:
                    have.add(grad)
                else:
                    cotangents[parent] = grad.b.add(have, grad)
            if walk.frees:
                node.saved = FREED
                node.parents = ()

    return walked
