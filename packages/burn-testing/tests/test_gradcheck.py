from burn_dispatch import device
from burn_testing import gradcheck
from burn_testing.samples import SAMPLES


def test_a_right_rule_passes_in_both_orders() -> None:
    s = next(s for s in SAMPLES["tanh"] if s.grad and "f64" in s.dtypes)
    assert gradcheck.first_order(device("flex"), s) == []
    assert gradcheck.second_order(device("flex"), s) == []
    assert gradcheck.checkpointed(device("flex"), s) == []


def test_a_wrong_gradient_is_found() -> None:
    # relu at its kink: the slope to one side is not the difference over both.
    s = next(s for s in SAMPLES["relu"] if s.name.startswith("2x3"))
    probe = gradcheck.Probe(s)
    probe.leaves[0][...] = 0.0
    context = device("flex").autodiff().context
    found = gradcheck.gradients(context, probe, probe.leaves)
    expected = gradcheck.differences(lambda v: gradcheck._value(context, probe, v), probe.leaves)
    assert gradcheck._wrong(found, expected, gradcheck.FIRST)
