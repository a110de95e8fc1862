"""Data sets from files: what they hold, and that broken files are refused by name."""

from __future__ import annotations

import gzip
import json
import pickle

import numpy as np
import pytest

from burn_dataset import (
    ArrowDataset,
    AudioFolderDataset,
    CifarDataset,
    HuggingFaceDataset,
    IdxDataset,
    ImageFolderDataset,
    JsonLinesDataset,
    MnistDataset,
    SqliteDataset,
    TextFolderDataset,
    read_idx,
    read_image,
)
from burn_std import ArgumentError, IndexRangeError, StoreError

ROWS = [{"x": 1, "name": "ä"}, {"x": 2, "name": None}]


# ---- rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines(tmp_path, name):
    path = tmp_path / name
    text = "\n".join(json.dumps(r) for r in ROWS) + "\n\n"
    opened = gzip.open if name.endswith("gz") else open
    with opened(path, "wt", encoding="utf-8") as out:
        out.write(text)
    data = pickle.loads(pickle.dumps(JsonLinesDataset(path)))
    assert (len(data), data[1], data[-2]) == (2, ROWS[1], ROWS[0])
    with pytest.raises(IndexRangeError):
        data[2]


def test_broken_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n{"x": \n')
    data = JsonLinesDataset(path)
    assert data[0] == {"x": 1}
    with pytest.raises(StoreError, match=r"line 2 .*a\.jsonl"):
        data[1]
    with pytest.raises(StoreError):
        JsonLinesDataset(tmp_path / "none.jsonl")


def test_sqlite(tmp_path):
    path = tmp_path / "a.db"
    SqliteDataset.write(path, 'odd "name"', ROWS)
    SqliteDataset.write(path, 'odd "name"', ROWS[:1])
    data = SqliteDataset(path, 'odd "name"')
    assert [data[k] for k in range(len(data))] == [*ROWS, ROWS[0]]
    copy = pickle.loads(pickle.dumps(data))
    assert copy[1] == ROWS[1]
    data.close()
    assert data[0] == ROWS[0]
    for made in (data, copy):
        made.close()


def test_broken_sqlite(tmp_path):
    path = tmp_path / "a.db"
    SqliteDataset.write(path, "t", ROWS)
    with pytest.raises(StoreError, match=r"u of a\.db"):
        SqliteDataset(path, "u")
    with pytest.raises(StoreError):
        SqliteDataset(tmp_path / "none.db", "t")
    path.write_bytes(b"no database at all" * 9)
    with pytest.raises(StoreError):
        SqliteDataset(path, "t")
    with pytest.raises(StoreError, match="one set of columns"):
        SqliteDataset.write(tmp_path / "b.db", "t", [{"x": 1}, {"y": 1}])
    with pytest.raises(ArgumentError):
        SqliteDataset(tmp_path / "a.db", "")


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    path = tmp_path / f"a.{kind}"
    table = pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path)
    data = ArrowDataset(path)
    assert (len(data), data[1], data.columns) == (2, ROWS[1], ["x", "name"])
    assert ArrowDataset(path, columns=["name"])[0] == {"name": "ä"}
    with pytest.raises(StoreError):
        ArrowDataset(path, columns=["y"])
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(StoreError, match=r"a\."):
        ArrowDataset(path)


def test_hugging_face():
    assert HuggingFaceDataset(ROWS)[-1] == ROWS[1]
    with pytest.raises(StoreError, match="split='train'"):
        HuggingFaceDataset({"train": ROWS})


# ---- folders --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for kind in ("dog", "cat"):
        (tmp_path / kind / "deep").mkdir(parents=True)
    return tmp_path


def test_texts(folder):
    (folder / "dog" / "a.txt").write_text("wuff")
    (folder / "cat" / "deep" / "b.TXT").write_bytes("miau ä".encode())
    (folder / "cat" / "c.md").write_text("not this")
    data = TextFolderDataset(folder, transform=str.upper)
    assert (data.classes, len(data)) == (["cat", "dog"], 2)
    assert [data[k] for k in range(2)] == [("MIAU Ä", 0), ("WUFF", 1)]
    (folder / "dog" / "a.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(StoreError, match=r"a\.txt"):
        data[1]


def test_folders_without_files(folder):
    with pytest.raises(StoreError, match=r"\.txt"):
        TextFolderDataset(folder)
    with pytest.raises(StoreError, match="folder per class"):
        TextFolderDataset(folder / "none")


def test_images(folder):
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    image.fromarray(pixels).save(folder / "dog" / "a.png")
    image.fromarray(pixels[..., 0]).save(folder / "cat" / "b.png")
    data = ImageFolderDataset(folder)
    x, label = data[1]
    assert (label, x.shape, x.dtype) == (1, (3, 4, 6), np.uint8)
    assert (x == pixels.transpose(2, 0, 1)).all()
    assert data[0][0].shape == (3, 4, 6)
    assert ImageFolderDataset(folder, mode="L", size=(2, 3))[1][0].shape == (1, 2, 3)
    assert ImageFolderDataset(folder, transform=lambda a: a.sum())[0][1] == 0
    whole = (folder / "dog" / "a.png").read_bytes()
    (folder / "dog" / "a.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=r"no image.*a\.png"):
        data[1]
    with pytest.raises(StoreError):
        read_image(folder / "none.png")


def test_sounds(folder):
    module = pytest.importorskip("soundfile")
    sound = np.sin(np.arange(80) / 5).astype(np.float32)
    module.write(folder / "dog" / "a.wav", np.stack([sound, -sound], 1), 8000, subtype="FLOAT")
    data = AudioFolderDataset(folder, sample_rate=8000)
    x, label = data[0]
    assert (label, x.shape) == (1, (2, 80))
    np.testing.assert_allclose(x[1], -sound, atol=1e-6)
    longer, _ = AudioFolderDataset(folder, samples=100)[0]
    assert not longer[:, 80:].any()
    assert AudioFolderDataset(folder, samples=7)[0][0].shape == (2, 7)
    with pytest.raises(StoreError, match=r"8000 in a\.wav"):
        AudioFolderDataset(folder, sample_rate=16000)[0]
    (folder / "dog" / "a.wav").write_bytes(b"RIFF no")
    with pytest.raises(StoreError, match=r"a\.wav"):
        data[0]


# ---- known files ----------------------------------------------------------------------------


def _idx(array, code):
    head = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.tobytes()


@pytest.mark.parametrize(("dtype", "code"), [("u1", 8), ("i1", 9), (">i2", 11), (">f4", 13)])
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(tmp_path, dtype, code, packed):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    data = _idx(array, code)
    path = tmp_path / "a.idx"
    path.write_bytes(gzip.compress(data) if packed else data)
    found = read_idx(path)
    assert (found == array).all()
    assert found.dtype.isnative


@pytest.mark.parametrize("damage", [
    lambda d: d[:3], lambda d: b"\1" + d[1:], lambda d: d[:2] + b"\7" + d[3:], lambda d: d[:-1],
    lambda d: d + b"x", lambda d: d[:4] + b"\xff" * 12 + d[16:], lambda d: d[:9],
    lambda d: gzip.compress(d)[:-12],
])  # fmt: skip
def test_broken_idx_files(tmp_path, damage):
    path = tmp_path / "a.idx"
    path.write_bytes(damage(_idx(np.zeros((2, 3, 4), "u1"), 8)))
    with pytest.raises(StoreError, match=r"a\.idx"):
        read_idx(path)


def test_mnist(tmp_path):
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28).astype("u1")
    labels = np.array([3, 9], "u1")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(_idx(images, 8))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(_idx(labels, 8)))
    data = MnistDataset(tmp_path)
    x, y = data[1]
    assert (x.shape, x.dtype, int(y)) == ((1, 28, 28), np.float32, 9)
    assert x.max() == 1
    with pytest.raises(StoreError, match="t10k-images"):
        MnistDataset(tmp_path, train=False)
    with pytest.raises(StoreError, match="labels"):
        IdxDataset(tmp_path / "train-images-idx3-ubyte", tmp_path / "train-images-idx3-ubyte")


def test_cifar(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (3, 3072)).astype(np.uint8)
    ten = np.concatenate([np.array([[1], [9], [0]], np.uint8), pixels], 1)
    (tmp_path / "test_batch.bin").write_bytes(ten.tobytes())
    hundred = np.concatenate([np.array([[4, 70], [19, 99], [0, 0]], np.uint8), pixels], 1)
    (tmp_path / "test.bin").write_bytes(hundred.tobytes())
    data = CifarDataset(tmp_path, train=False)
    x, y = data[1]
    assert (x.shape, int(y)) == ((3, 32, 32), 9)
    np.testing.assert_allclose(x.reshape(-1), pixels[1] / 255, rtol=1e-6)
    assert int(CifarDataset(tmp_path, False, classes=100)[1][1]) == 99
    assert int(CifarDataset(tmp_path, False, classes=100, coarse=True)[1][1]) == 19
    with pytest.raises(StoreError, match="data_batch_1"):
        CifarDataset(tmp_path)
    (tmp_path / "test.bin").write_bytes(b"short")
    with pytest.raises(StoreError, match=r"5 bytes in test\.bin"):
        CifarDataset(tmp_path, False, classes=100)
    with pytest.raises(ArgumentError):
        CifarDataset(tmp_path, classes=20)
