"""File formats and train views of third parties, from the same wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import Environment

SAVE = (
    "import burn\n"
    "from burn import nn, store\n"
    "model = nn.Linear(2, 1)\n"
    "store.save(model, {path!r})\n"
    "other = nn.Linear(2, 1)\n"
    "store.load(other, {path!r})\n"
    "print(other.weight.tolist() == model.weight.tolist())"
)
TRAIN = (
    "import numpy as np\n"
    "import burn\n"
    "from burn import nn, optim\n"
    "from burn.dataset import ArrayDataset, DataLoader\n"
    "from burn.train import Learner, SupervisedTraining\n"
    "x = np.ones((4, 1), np.float32)\n"
    "model = nn.Linear(1, 1, device=burn.Device.flex().autodiff())\n"
    "loader = DataLoader(ArrayDataset(x, x), 2)\n"
    "learner = Learner(model, optim.SGD(lr=0.1), nn.MSELoss())\n"
    "SupervisedTraining(loader, epochs=1, view={view!r}).run(learner)"
)


def failure(environment: Environment, code: str) -> str:
    """The last line of what a failing program says."""
    done = environment.run("-c", code)
    assert done.returncode == 1, done.stdout
    return done.stderr.strip().splitlines()[-1]


def test_good_format_saves_and_loads_by_its_ending(
    environment: Environment, tmp_path: Path
) -> None:
    path = tmp_path / "model.text"
    assert environment.says(SAVE.format(path=str(path))) == "True"
    assert path.read_bytes().startswith(b"ACME")


def test_good_format_is_known_by_its_first_bytes(environment: Environment, tmp_path: Path) -> None:
    path, other = tmp_path / "model.text", tmp_path / "weights"
    environment.says(SAVE.format(path=str(path)))
    path.rename(other)
    assert (
        environment.says(f"from burn import store; print(len(store.open({str(other)!r})))") == "2"
    )


def test_broken_formats_disturb_no_other(environment: Environment, tmp_path: Path) -> None:
    path = str(tmp_path / "model.safetensors")
    assert environment.says(SAVE.format(path=path)) == "True"


def test_an_ending_without_a_format_names_the_broken_ones(
    environment: Environment, tmp_path: Path
) -> None:
    message = failure(environment, SAVE.format(path=str(tmp_path / "model.torn")))
    assert "no installed format has this file name ending" in message
    assert "torn" in message.partition("do not load")[2]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("torn", "libacme.so.3"),
        ("stale", "Upgrade acme-stale"),
        ("double", ":double, or uninstall the other"),
        ("txt", "Did you mean"),
    ],
)
def test_a_format_asked_for_by_name_says_why_it_fails(
    environment: Environment, name: str, part: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "model.bin")
    code = f"from burn import nn, store; store.save(nn.Linear(2, 1), {path!r}, format={name!r})"
    message = failure(environment, code)
    assert "LoadError" in message
    assert part in message


def test_one_of_two_formats_is_chosen_by_its_distribution(
    environment: Environment, tmp_path: Path
) -> None:
    path = str(tmp_path / "model.bin")
    code = (
        "from burn import nn, store; "
        f"store.save(nn.Linear(2, 1), {path!r}, format='other-double:double')"
    )
    environment.says(code)
    assert Path(path).read_bytes().startswith(b"ACME")


def test_good_view_hears_of_a_training(environment: Environment) -> None:
    assert "acme begins" in environment.says(TRAIN.format(view="lines"))


@pytest.mark.parametrize(
    ("name", "part"),
    [("dark", "libacme.so.3"), ("past", "Upgrade acme-past"), ("plaim", "Did you mean 'plain'")],
)
def test_a_view_that_fails_says_why(environment: Environment, name: str, part: str) -> None:
    message = failure(environment, TRAIN.format(view=name))
    assert "LoadError" in message
    assert part in message


def test_broken_views_disturb_no_other(environment: Environment) -> None:
    assert "train loss" in environment.says(TRAIN.format(view="plain"))
