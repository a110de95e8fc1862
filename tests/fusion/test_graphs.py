"""`Device.capture()` and `burn.graph`: recorded and not run, saved, loaded, run anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import burn
import burn_core.graphing
from burn import nn

CAPTURE = burn.Device.capture()
DEVICES = ["flex", "fusion-flex", "eager-cpu", "cpu"]


def _model() -> nn.Module:
    burn.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, device="flex"), nn.BatchNorm2d(4, device="flex"), nn.GELU(),
        nn.Flatten(), nn.Linear(4 * 36, 5, device="flex"), nn.Softmax(-1),
    )  # fmt: skip


def _graph() -> tuple[nn.Module, burn.Graph]:
    model = _model()
    moved = model.valid().to_device(CAPTURE)
    return model, burn.graph(moved, burn.zeros(3, 1, 8, 8, device=CAPTURE))


X = np.random.default_rng(0).standard_normal((3, 1, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("name", DEVICES)
def test_a_graph_gives_what_the_model_gives(name):
    model, graph = _graph()
    expected = model.valid().to_device(name)(burn.tensor(X, device=name))
    found = graph.run(name, X)
    assert found.device == burn.device(name)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    again = graph.run(burn.device(name), burn.tensor(X, device="flex"))
    np.testing.assert_array_equal(found.numpy(), again.numpy())


def test_files_hold_wire_form_and_weights(tmp_path):
    _, graph = _graph()
    path = tmp_path / "model.safetensors"
    graph.save(path)
    loaded = burn.Graph.load(path)
    assert loaded.program == graph.program and loaded.runtime == graph.runtime
    assert loaded.inputs == graph.inputs and loaded.outputs == graph.outputs
    assert str(loaded) == str(graph)
    np.testing.assert_array_equal(loaded.run("flex", X).numpy(), graph.run("flex", X).numpy())
    with burn.store.open(path) as file:
        assert set(file) == set(graph.weights)
        assert json.loads(file.metadata["burn.graph"])["inputs"] == ["input0"]
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_graph_runs_where_no_layer_is_imported(tmp_path):
    _, graph = _graph()
    path = tmp_path / "model.safetensors"
    graph.save(path)
    code = (
        "import sys, numpy as np; from burn_core import Graph\n"
        f"out = Graph.load({str(path)!r}).run('flex', np.ones((3, 1, 8, 8), np.float32))\n"
        "assert not any(m.startswith(('burn_nn', 'burn_optim')) for m in sys.modules)\n"
        "print(out.sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(3, abs=1e-5)


def test_names_text_and_picture():
    model, graph = _graph()
    assert set(graph.weights) < {*dict(model.named_parameters()), *dict(model.named_buffers())}
    assert [str(p) for p in graph.outputs] == ["output0: float32[3, 5]"]
    assert "# weight 0.weight" in str(graph) and "softmax" in str(graph)
    picture = ElementTree.fromstring(graph.svg())
    texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(texts) == len(graph.program.ops) + len(graph.weights) + 2
    assert "operations" in repr(graph)


def test_several_inputs_and_outputs_by_name():
    def f(x, pair, scale=2.0):
        a, b = pair
        return {"sum": (a + b) * scale, "same": x, "both": [a @ b, a.argmax(1)]}

    x, a = burn.ones(2, device=CAPTURE), burn.ones(3, 3, device=CAPTURE)
    graph = burn.graph(f, x, (a, a))
    assert [p.name for p in graph.inputs] == ["x", "pair.0", "pair.1"]
    one, two = np.eye(3, dtype=np.float32), np.full((3, 3), 2, np.float32)
    out = graph.run("flex", np.array([5, 6], np.float32), one, two)
    assert out[0].tolist() == ((one + two) * 2).tolist()
    assert out[1].tolist() == [5.0, 6.0]
    assert out[2].tolist() == two.tolist() and out[3].tolist() == [0, 1, 2]


def test_what_nobody_reads_is_left_out():
    w = burn.tensor(np.ones((4, 4), np.float32), device=CAPTURE)

    def f(x):
        (w @ w).exp()
        return x + 1

    graph = burn.graph(f, burn.ones(2, device=CAPTURE))
    assert [op.name for op in graph.program.ops] == ["full", "add"]
    assert not graph.weights


def test_gradients_are_part_of_a_graph():
    w = burn.tensor(np.array([1.0, 2.0], np.float32), device=CAPTURE.autodiff()).require_grad()

    def f(x):
        loss = ((x * w).exp()).sum()
        return loss, w.grad(loss.backward())

    graph = burn.graph(f, burn.ones(2, device=CAPTURE))
    loss, grad = graph.run("flex", np.array([0.5, 0.25], np.float32))
    half = np.exp(0.5)
    assert loss.item() == pytest.approx(2 * half)
    np.testing.assert_allclose(grad.numpy(), [0.5 * half, 0.25 * half], rtol=1e-6)


def test_random_operations_draw_anew():
    graph = burn.graph(lambda x: x + burn.rand(100, device=CAPTURE), burn.ones(100, device=CAPTURE))
    one, other = (graph.run("flex", np.zeros(100, np.float32)).numpy() for _ in range(2))
    assert not np.array_equal(one, other)


def test_a_long_graph_is_never_cut():
    def f(x):
        for _ in range(1500):
            x = x + 1
        return x

    graph = burn.graph(f, burn.ones(2, device=CAPTURE))
    assert graph.run("flex", np.zeros(2, np.float32)).tolist() == [1500.0, 1500.0]
    assert "more operations" in graph.svg()


def test_reading_is_refused():
    x = burn.ones(3, device=CAPTURE)
    for read in (
        lambda x: x.sum().item(),
        lambda x: (x + 1).numpy(),
        lambda x: bool((x > 0).all()),
        lambda x: x.nonzero(),
        lambda x: (x * 2).to_device("flex"),
    ):
        with pytest.raises(burn.CaptureError):
            read(x)
        with pytest.raises(burn.CaptureError):
            burn.graph(lambda x, read=read: read(x) and x, x)
    with pytest.raises(burn.CaptureError, match="an input of a graph has no value"):
        burn.graph(lambda x: x if x.tolist() else -x, burn.tensor([1.0], device=CAPTURE))
    with pytest.raises(burn.ShapeError):
        x @ burn.ones(4, device=CAPTURE)


def test_wrong_uses_are_typed_errors(tmp_path):
    x = burn.ones(3, device=CAPTURE)
    with pytest.raises(burn.CaptureError, match="one device that captures"):
        burn.graph(lambda x: x, burn.ones(3, device="flex"))
    with pytest.raises(burn.CaptureError, match="one device that captures"):
        burn.graph(lambda: burn.ones(3, device=CAPTURE))
    outside = x * 2
    with pytest.raises(burn.CaptureError, match="came from the host"):
        burn.graph(lambda x: x + outside, x)
    with pytest.raises(burn.CaptureError, match="returns tensors"):
        burn.graph(lambda x: (x, 3), x)
    with pytest.raises(burn.CaptureError):
        burn.capture(lambda x: x + 1)(x)
    graph = burn.graph(lambda x: x + 1, x)
    with pytest.raises(burn.ShapeError, match="the shape that the graph was made for"):
        graph.run("flex", np.ones(4, np.float32))
    with pytest.raises(burn.DTypeError):
        graph.run("flex", np.ones(3))
    with pytest.raises(burn.ArgumentError, match="takes 1 inputs"):
        graph.run("flex")
    burn.store.save_tensors({"a": burn.ones(1)}, tmp_path / "plain.safetensors")
    with pytest.raises(burn.StoreError, match="holds a graph"):
        burn.Graph.load(tmp_path / "plain.safetensors")
    with pytest.raises(burn.StoreError):
        graph.save(tmp_path / "no" / "such" / "folder.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(program={}),
        lambda d: d.update(outputs=[["output0", 99]]),
        lambda d: d.update(outputs=3),
        lambda d: d.update(outputs=[]),
        lambda d: d.update(inputs=[]),
        lambda d: d.update(weights=["missing"]),
        lambda d: d["program"]["ops"][-1].update(op="no_such_operation"),
        lambda d: d["runtime"].update(shapes=[[3, 3]]),
        lambda d: d.clear(),
    ],
)
def test_hostile_files_are_refused(change, tmp_path):
    graph = burn.graph(lambda x: x + 1, burn.ones(3, device=CAPTURE))
    data = graph.to_wire()
    change(data)
    path = tmp_path / "bad.safetensors"
    burn.store.save_tensors({}, path, metadata={"burn.graph": json.dumps(data)})
    with pytest.raises((burn.StoreError, burn.GraphError)):
        burn.Graph.load(path)


@pytest.mark.parametrize("dim", [-1, 2, True, [0], 1.0, None])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.index_select(0, (x[:, 0] * 0).long()),
        lambda x: x.topk(2, 0).values,
        lambda x: burn.cat([x, x], 0),
        lambda x: x.cumsum(0),
    ],
    ids=["index_select", "topk", "cat", "cumsum"],
)
def test_dims_of_hostile_files_are_refused(fn, dim):
    """Rules that cut shapes in slices take any dim, and kernels trust it."""
    graph = burn.graph(fn, burn.ones(4, 3, device=CAPTURE))
    data = graph.to_wire()
    (op,) = (
        o for o in data["program"]["ops"] if o["op"] in ("index_select", "topk", "cat", "cumsum")
    )
    assert op["static"][0] == 0
    op["static"][0] = dim
    with pytest.raises(burn.GraphError):
        burn_core.graphing._from_wire(json.dumps(data), graph.weights)


def test_tensors_have_shapes_and_the_device_is_no_device_to_compute_on():
    device = burn.Device.capture()
    x = burn.ones(4, 3, device=device)
    y = burn.functional.softmax(x, -1)
    assert y.shape == (4, 3)
    device.sync()
    device.flush()
    assert device.name == "capture" and device not in burn.Device.enumerate()
