"""Paths name one thing each, and what a module holds stands in its dict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import burn_tensor as bt
from burn_core import Buffer, Module, Parameter, average_buffers
from burn_std import ArgumentError


class Held(Module):
    def __init__(self, held: Any) -> None:
        self.held = held


class Leaf(Module):
    def __init__(self) -> None:
        self.w = Parameter(bt.ones(1))


def p() -> Parameter:
    return Parameter(bt.ones(1))


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (lambda: {"1": p(), 1: p()}, "model.held['1']", "model.held[1]"),
        (lambda: {"a.b": p(), "a": {"b": p()}}, "model.held['a.b']", "model.held['a']['b']"),
        (lambda: [{1: [p()], "1": [p()]}], "model.held[0][1][0]", "model.held[0]['1'][0]"),
        (lambda: {None: Leaf(), "None": Leaf()}, "model.held[None].w", "model.held['None'].w"),
        (lambda: {1: p(), "1": Buffer(bt.ones(1))}, "model.held[1]", "model.held['1']"),
    ],
)
def test_two_under_one_path_are_refused(make: Any, first: str, second: str) -> None:
    model = Held(make())
    for act in (model.state_dict, model.into_record, lambda: model.load_state_dict({})):
        with pytest.raises(ArgumentError) as found:
            act()
        assert found.value.got == f"{first} and {second}"
    # What goes by no path sees both.
    assert len(list(model.parameters())) + len(list(model.buffers())) == 2


def test_names_are_refused_as_they_come() -> None:
    model = Held({"1": p(), 1: p()})
    with pytest.raises(ArgumentError):
        dict(model.named_parameters())
    buffers = Held({"1": Buffer(bt.ones(1)), 1: Buffer(bt.ones(1), persistent=False)})
    assert list(buffers.state_dict()) == ["held.1"]  # the other is not saved
    for act in (
        lambda: list(buffers.named_buffers()),
        lambda: average_buffers(buffers, [buffers.fork()]),
        lambda: list(Held({1: Leaf(), "1": Leaf()}).named_modules()),
    ):
        with pytest.raises(ArgumentError):
            act()
    assert len(list(Held({1: Leaf(), "1": Leaf()}).modules())) == 3


def test_a_tied_path_that_another_has_is_refused() -> None:
    shared = p()
    model = Held([shared, {"1": shared, 1: p()}])
    with pytest.raises(ArgumentError):
        model.load_state_dict(model.state_dict())


def test_one_thing_under_one_path_twice_is_one() -> None:
    shared = p()
    model = Held({"1": shared, 1: shared, "2": p()})
    assert list(model.state_dict()) == ["held.1", "held.2"]
    model.load_state_dict({"held.1": bt.zeros(1), "held.2": bt.zeros(1)})
    assert shared.item() == 0


def test_slots_are_refused_when_the_class_is_made() -> None:
    with pytest.raises(ArgumentError, match="slots"):

        class Narrow(Module):
            __slots__ = ("w",)

    with pytest.raises(ArgumentError, match="slots=True"):

        @dataclass(slots=True, eq=False)
        class Made(Module):
            w: int

    class Mixin:
        __slots__ = "w"

    with pytest.raises(ArgumentError, match="of Mixin"):

        class Mixed(Mixin, Module):
            pass

    class Empty(Module):
        __slots__ = ()

        def __init__(self) -> None:
            self.w = p()

    assert len(list(Empty().parameters())) == 1

    @dataclass(eq=False)
    class Plain(Module):
        w: Any

    assert list(Plain(p()).state_dict()) == ["w"]
