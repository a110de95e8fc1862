"""The cache of compiled kernels on disk: what breaks is a miss, never an error."""

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from burn_cube.runtime.cache import DiskCache, cache_folder, digest_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kernels.sqlite"


def test_what_was_put_is_found_by_another_connection(path):
    first = DiskCache(path)
    first.put(b"key", b"code")
    assert DiskCache(path).get(b"key") == b"code"
    assert first.get(b"other") is None
    assert (first.hits, first.misses) == (0, 1)


def test_a_damaged_entry_is_a_miss_and_goes(path):
    cache = DiskCache(path)
    cache.put(b"key", b"code")
    cache.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE kernels SET data = ?", (b"c0de",))
    db.close()
    assert cache.get(b"key") is None
    cache.put(b"key", b"new")
    assert cache.get(b"key") == b"new"


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" * 300])
def test_a_damaged_file_is_started_over(path, content):
    path.write_bytes(content)
    cache = DiskCache(path)
    assert cache.get(b"key") is None
    cache.put(b"key", b"code")
    assert cache.get(b"key") == b"code"


def test_a_file_that_is_damaged_while_open_is_started_over(path):
    cache = DiskCache(path)
    for number in range(50):
        cache.put(bytes([number]), os.urandom(5000))
    cache.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    for number in range(50):
        cache.get(bytes([number]))
    cache.put(b"key", b"code")
    assert cache.get(b"key") in (b"code", None)
    fresh = DiskCache(path)
    fresh.put(b"key", b"code")
    assert fresh.get(b"key") == b"code"


def test_a_file_of_an_older_version_is_started_over(path):
    import sqlite3

    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE kernels (key TEXT PRIMARY KEY, code BLOB NOT NULL, digest BLOB NOT NULL, "
            "size INTEGER NOT NULL, used REAL NOT NULL)"
        )
    db.close()
    kept = DiskCache(path)
    kept.put(b"key", b"code")
    assert kept.get(b"key") == b"code"
    kept.close()
    assert DiskCache(path).get(b"key") == b"code"


def test_the_size_is_bounded_and_the_oldest_go_first(path):
    cache = DiskCache(path, limit=100_000)
    for number in range(30):
        cache.put(b"%d" % number, bytes(9000))
    assert cache.get(b"0") is None
    assert cache.get(b"29") == bytes(9000)
    cache.close()
    with sqlite3.connect(path) as db:
        (total,) = db.execute("SELECT SUM(size) FROM kernels").fetchone()
    db.close()
    assert total <= 100_000
    cache.put(b"huge", bytes(200_000))
    assert cache.get(b"huge") is None and cache.get(b"29") is not None


def test_a_write_does_not_read_what_is_kept(path):
    kept = DiskCache(path)
    kept.put(b"key", b"code")
    with sqlite3.connect(path) as db:
        plan = db.execute("EXPLAIN QUERY PLAN SELECT SUM(size) FROM kernels").fetchall()
    db.close()
    assert "COVERING INDEX" in plan[0][3]


def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path):
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "kernels.sqlite")
    cache.put(b"key", b"code")
    assert cache.get(b"key") is None


def test_a_locked_file_is_a_miss_and_is_left_alone(path):
    cache = DiskCache(path)
    cache.put(b"key", b"code")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache.put(b"new", b"code")
    other.execute("ROLLBACK")
    other.close()
    assert cache.get(b"key") == b"code"
    assert cache.get(b"new") is None


def run(code, path):
    script = "import sys\nfrom pathlib import Path\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", script, str(path)])


def test_several_processes_write_at_once(path):
    code = """
        from burn_cube.runtime.cache import DiskCache
        cache = DiskCache(Path(sys.argv[1]))
        for number in range(60):
            cache.put(b"%d" % (number % 20), bytes([number % 20]) * 2000)
            found = cache.get(b"%d" % (number // 2 % 20))
            assert found is None or len(set(found)) == 1
    """
    children = [run(code, path) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    cache = DiskCache(path)
    assert all(cache.get(b"%d" % n) == bytes([n]) * 2000 for n in range(20))


def test_a_process_killed_while_it_writes_leaves_a_good_file(path):
    code = """
        from burn_cube.runtime.cache import DiskCache
        cache = DiskCache(Path(sys.argv[1]))
        cache.put(b"before", b"code")
        open(sys.argv[1] + ".ready", "w").close()
        while True:
            cache.put(b"key", bytes(1 << 20))
    """
    child = run(code, path)
    ready = path.with_name(path.name + ".ready")
    wait = threading.Event()
    for _ in range(600):
        if ready.exists():
            break
        wait.wait(0.05)
    wait.wait(0.2)
    child.kill()
    child.wait()
    cache = DiskCache(path)
    assert cache.get(b"before") == b"code"
    assert cache.get(b"key") in (None, bytes(1 << 20))
    cache.put(b"after", b"code")
    assert cache.get(b"after") == b"code"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_opens_the_file_anew(path):
    cache = DiskCache(path)
    cache.put(b"key", b"code")
    child = os.fork()
    if child == 0:
        good = cache.get(b"key") == b"code"
        cache.put(b"child", b"code")
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cache.get(b"child") == b"code"


def test_clear_forgets_everything(path):
    cache = DiskCache(path)
    cache.put(b"key", b"code")
    cache.clear()
    assert cache.get(b"key") is None


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("BURN_CACHE_DIR", "off")
    assert cache_folder() is None
    monkeypatch.setenv("BURN_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("BURN_CACHE_DIR")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_folder() == tmp_path / "burn"
        monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().name == "burn"


def test_keys_depend_on_every_part():
    keys = {digest_of("a", "b"), digest_of("ab"), digest_of("ab", ""), digest_of("b", "a")}
    assert len(keys) == 4
