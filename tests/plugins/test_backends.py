"""Backends and decorators of third parties, as tiny wheels in a fresh environment."""

from __future__ import annotations

import pytest

from tests.environments import Environment
from tests.plugins.sources import PLUGINS


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


@pytest.mark.parametrize(
    ("name", "part"), [("mute", "libacme.so.3"), ("late", "Upgrade acme-late")]
)
def test_decorators_that_fail_say_why(environment: Environment, name: str, part: str) -> None:
    message = refusal(environment, f"{name}-flex")
    assert f"acme-{name} 0.3.0" in message
    assert part in message


def test_missing_decorator_is_named(environment: Environment) -> None:
    message = refusal(environment, "ecko-flex")
    assert "ecko" in message
    assert "'echo'" in message


def test_broken_plugins_disturb_no_other_device(environment: Environment) -> None:
    assert environment.says("import burn; print(burn.ones(2).device)") == "flex"


@pytest.mark.parametrize("name", ["deaf", "dead"])
def test_broken_hardware_says_what_failed(environment: Environment, name: str) -> None:
    message = refusal(environment, name)
    assert "BackendLoadError" in message
    assert "acme driver: ioctl failed" in message
    assert "doctor" in message


def test_enumeration_leaves_out_what_breaks_and_reports_it(environment: Environment) -> None:
    code = (
        "import burn, logging\n"
        "logging.getLogger('burn').addHandler(logging.NullHandler())\n"
        "found = burn.Device.enumerate()\n"
        "print(sorted(d.name for d in found))\n"
        "print(sorted(found.broken))\n"
        "print(found.broken['deaf'])"
    )
    devices, broken, why = environment.says(code).splitlines()
    assert devices == "['flex', 'good']"
    assert broken == "['broken', 'dead', 'deaf', 'hollow', 'new', 'old', 'twin']"
    assert "ioctl failed" in why


def test_enumeration_logs_what_it_leaves_out(environment: Environment) -> None:
    done = environment.run("-c", "import burn; burn.Device.enumerate()")
    assert done.returncode == 0
    assert "deaf" in done.stderr
    assert "ioctl failed" in done.stderr


def test_listing_of_devices_shows_the_broken_ones(environment: Environment) -> None:
    done = environment.run("-m", "burn", "devices")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "good" in lines
    assert "default: flex" in lines
    assert any(line.startswith("dead: broken: ") and "ioctl failed" in line for line in lines)


@pytest.mark.parametrize("command", ["devices", "doctor"])
def test_a_default_device_that_breaks_is_reported(environment: Environment, command: str) -> None:
    done = environment.run("-m", "burn", command, BURN_DEVICE="broken")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "default: none" in done.stdout
    assert "libacme.so.3" in done.stdout


def test_doctor_counts_what_is_broken(environment: Environment) -> None:
    done = environment.run("-m", "burn", "doctor")
    assert done.returncode == 1, done.stderr
    assert "problems: 14" in done.stdout
    for part in ("libacme.so.3", ":twin, or uninstall", "Upgrade acme-old", "Upgrade burn-backend"):
        assert part in done.stdout
    assert "good         acme-good 0.3.0" in done.stdout


def test_listing_shows_every_plugin_and_why_it_fails(environment: Environment) -> None:
    done = environment.run("-m", "burn", "backends")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for distribution, entry, _, group in PLUGINS:
        if group not in ("backends", "decorators"):
            continue
        assert any(entry in line and distribution in line for line in lines), done.stdout
    (broken,) = (line for line in lines if "acme-broken" in line)
    assert "libacme.so.3" in done.stdout
    assert "fail" in broken
