"""`import burn` loads no optional package, probes nothing, and costs little over numpy."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

# What may come with `import burn` beside numpy and the standard library.
ALLOWED = {
    *("burn", "burn_std", "burn_ir", "burn_backend", "burn_dispatch", "burn_tensor"),
    *("burn_core", "burn_nn", "burn_optim", "numpy", "ml_dtypes"),
}
# Parts of the standard library that are slow to load and that no import needs.
SLOW = {"asyncio", "concurrent.futures", "http", "multiprocessing", "sqlite3", "ssl", "unittest"}
MARK = 60.0


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    return set(
        json.loads(
            run(f"import sys; {statement}; import json; print(json.dumps(list(sys.modules)))")
        )
    )


def test_import_burn_loads_nothing_optional() -> None:
    # An editable install's finders are modules of their own; they come before any import.
    alone = loaded_by("import numpy, ml_dtypes")
    new = loaded_by("import burn") - alone - loaded_by("pass")
    foreign = {
        name
        for name in (module.partition(".")[0] for module in new)
        if name not in ALLOWED and name not in sys.stdlib_module_names
    }
    assert not foreign
    assert not new & SLOW


def test_import_burn_reads_no_metadata_and_starts_no_thread() -> None:
    code = (
        "import importlib.metadata as m, threading\n"
        "def refuse(*a, **k): raise AssertionError('metadata was read')\n"
        "m.entry_points = m.distribution = m.version = refuse\n"
        "import burn\n"
        "print(threading.active_count())"
    )
    assert run(code).strip() == "1"


def test_import_cost_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Modules are compiled once and then read, as they are for a user.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    run("import numpy, burn")

    def cost(statement: str) -> float:
        # Processor time: what else the machine does would show in the clock on the wall.
        code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
        return statistics.median(float(run(code)) for _ in range(9)) * 1e3

    over = cost("import numpy, burn") - cost("import numpy")
    # A time never fails a test: machines differ and are shared. The list of modules above does.
    with capsys.disabled():
        print(f"\nimport burn costs {over:.0f} ms over import numpy (mark: {MARK:.0f} ms)")
