"""Backends and decorators of third parties, as tiny wheels in a fresh environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import Environment, build_wheels

GOOD = """
from burn_flex.plugin import FlexBackend, FlexPlugin


class Loud(FlexBackend):
    name = "{name}"


class Plugin(FlexPlugin):
    name = "{name}"
    about = "a third party's backend"

    def create(self, index):
        return Loud(index)


plugin = Plugin()
"""
BROKEN = 'raise OSError("libacme.so.3: cannot open shared object file")\n'
OTHER_CONTRACT = """
class Plugin:
    name = "{name}"
    about = "made for another contract"
    api_version = {version}


plugin = Plugin()
"""
INCOMPLETE = """
from burn_backend import API_VERSION, Backend


class Plugin:
    name = "hollow"
    about = "has no kernels"
    api_version = API_VERSION

    def device_count(self):
        return 1

    def create(self, index):
        return Backend({}, {})


plugin = Plugin()
"""
DECORATOR = """
from burn_backend import API_VERSION


class Decorator:
    name = "echo"
    api_version = API_VERSION
    about = "a third party's decorator"

    def backend(self, inner):
        print("wraps", inner.name)
        return inner


plugin = Decorator()
"""
# Distribution, entry name, source of the module.
PLUGINS = [
    ("acme-good", "good", GOOD.format(name="good")),
    ("acme-broken", "broken", BROKEN),
    ("acme-twin", "twin", GOOD.format(name="twin")),
    ("other-twin", "twin", GOOD.format(name="twin")),
    ("acme-old", "old", OTHER_CONTRACT.format(name="old", version=0)),
    ("acme-new", "new", OTHER_CONTRACT.format(name="new", version=99)),
    ("acme-hollow", "hollow", INCOMPLETE),
    ("acme-echo", "echo", DECORATOR),
]
MANIFEST = """
[project]
name = "{distribution}"
version = "0.3.0"
requires-python = ">=3.11"

[project.entry-points."burn.{group}"]
{entry} = "{module}:plugin"

[build-system]
requires = ["uv_build>=0.13.6,<0.14"]
build-backend = "uv_build"
"""


def write_project(folder: Path, distribution: str, entry: str, source: str) -> Path:
    module = distribution.replace("-", "_")
    project = folder / distribution
    (project / "src" / module).mkdir(parents=True)
    (project / "src" / module / "__init__.py").write_text(source)
    group = "decorators" if source == DECORATOR else "backends"
    manifest = MANIFEST.format(distribution=distribution, group=group, entry=entry, module=module)
    (project / "pyproject.toml").write_text(manifest)
    return project


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plugins")
    ours = build_wheels(folder / "ours")
    theirs = folder / "theirs"
    for plugin in PLUGINS:
        build_wheels(theirs, write_project(folder, *plugin))
    made = Environment(folder / "env")
    made.install_third_party(
        *("numpy", "ml-dtypes", "safetensors", "rich"),
        *("markdown-it-py", "mdurl", "pygments"),
    )
    made.install("burn", *(plugin[0] for plugin in PLUGINS), wheels=[ours, theirs])
    return made


def refusal(environment: Environment, name: str) -> str:
    """What the user reads when a device of that name is asked for."""
    done = environment.run("-c", f"import burn; burn.ones(2, device=burn.device({name!r}))")
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("burn_std.errors.Backend"), done.stderr
    return message


def test_good_backend_computes_and_differentiates(environment: Environment) -> None:
    code = (
        "import burn\n"
        "device = burn.device('good')\n"
        "x = burn.tensor([3.0], device=device.autodiff()).require_grad()\n"
        "print(device, x.grad((x * x).sum().backward()).tolist())"
    )
    assert environment.says(code) == "good [6.0]"


def test_good_backend_is_taken_by_the_environment_variable(environment: Environment) -> None:
    code = "import burn; print(burn.ones(2).device)"
    assert environment.says(code, BURN_DEVICE="good") == "good"


def test_broken_backend_says_what_failed_and_keeps_the_cause(environment: Environment) -> None:
    message = refusal(environment, "broken")
    assert "BackendLoadError" in message
    assert "acme-broken 0.3.0" in message
    assert "libacme.so.3" in message
    done = environment.run("-c", "import burn; burn.device('broken')")
    assert "OSError: libacme.so.3" in done.stderr, "the cause is chained"


def test_broken_backend_fails_the_same_way_twice(environment: Environment) -> None:
    code = (
        "import burn\n"
        "said = []\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        burn.device('broken')\n"
        "    except burn.BackendLoadError as error:\n"
        "        said.append(str(error))\n"
        "print(len(said), len(set(said)))"
    )
    assert environment.says(code) == "2 1"


def test_duplicate_name_lists_both_and_how_to_choose(environment: Environment) -> None:
    message = refusal(environment, "twin")
    assert "acme-twin" in message
    assert "other-twin" in message
    assert "acme-twin:twin" in message or "other-twin:twin" in message


def test_duplicate_name_is_chosen_by_its_distribution(environment: Environment) -> None:
    code = "import burn; print(burn.ones(2, device=burn.device('acme-twin:twin')).tolist())"
    assert environment.says(code) == "[1.0, 1.0]"


def test_older_contract_says_which_package_to_upgrade(environment: Environment) -> None:
    message = refusal(environment, "old")
    assert "contract version 0" in message
    assert "Upgrade acme-old" in message


def test_newer_contract_says_which_package_to_upgrade(environment: Environment) -> None:
    message = refusal(environment, "new")
    assert "contract version 99" in message
    assert "Upgrade burn-backend" in message


def test_incomplete_backend_names_what_is_missing(environment: Environment) -> None:
    message = refusal(environment, "hollow")
    assert "BackendContractError" in message
    assert "matmul" in message


def test_missing_backend_names_the_package(environment: Environment) -> None:
    message = refusal(environment, "cuda")
    assert "burn-cube-backend" in message
    assert "flex" in message, "what is installed is listed"


def test_misspelt_backend_names_the_nearest(environment: Environment) -> None:
    assert "'flex'" in refusal(environment, "flexx")


def test_decorator_wraps_any_backend_by_name(environment: Environment) -> None:
    code = "import burn; print(burn.ones(2, device=burn.device('echo-good')).device)"
    assert environment.says(code).splitlines() == ["wraps good", "echo<good>"]
    code = "import burn; print(burn.device('echo-fusion-good'))"
    assert environment.says(code).splitlines()[-1] == "echo<fusion<good>>"


def test_missing_decorator_is_named(environment: Environment) -> None:
    message = refusal(environment, "ecko-flex")
    assert "ecko" in message
    assert "'echo'" in message


def test_broken_plugins_disturb_no_other_device(environment: Environment) -> None:
    assert environment.says("import burn; print(burn.ones(2).device)") == "flex"


def test_listing_shows_every_plugin_and_why_it_fails(environment: Environment) -> None:
    done = environment.run("-m", "burn", "backends")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for distribution, entry, _ in PLUGINS:
        assert any(entry in line and distribution in line for line in lines), done.stdout
    (broken,) = (line for line in lines if "acme-broken" in line)
    assert "libacme.so.3" in done.stdout
    assert "fail" in broken
