"""Threads that share a device: building, differentiating, seeding, failing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import burn
from burn_testing.devices import another


def test_first_calls_from_many_threads_make_one_set_of_functions(backend: str) -> None:
    where = another(burn.device(backend), 7).autodiff()
    barrier = threading.Barrier(4)

    def work(seed: int) -> list[float]:
        barrier.wait()
        x = burn.full((3,), float(seed), device=where).require_grad()
        y = (x.sinh() * x.atan() + x.expm1().logsumexp(0)).sum()
        return list(x.grad(y.backward()).tolist())

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, [1, 1, 1, 1]))
    assert together == [together[0]] * 4


def test_each_thread_draws_from_its_own_stream(backend: str) -> None:
    where = another(burn.device(backend), 8)
    where.seed(5)
    main = burn.rand(4, device=where).tolist()
    other: list[Any] = []
    worker = threading.Thread(target=lambda: other.append(burn.rand(4, device=where).tolist()))
    worker.start()
    worker.join()
    assert other[0] != main
    where.seed(5)
    assert burn.rand(4, device=where).tolist() == main


def test_an_error_in_one_thread_leaves_the_others_alone(device: Any) -> None:
    def good() -> float:
        return float((burn.ones(4, device=device) * 2).sum().item())

    def bad() -> float:
        burn.ones(2, device=device) + burn.ones(3, device=device)
        return 0.0

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(bad if i % 3 == 0 else good) for i in range(30)]
    for i, future in enumerate(futures):
        if i % 3 == 0:
            assert isinstance(future.exception(), burn.ShapeError)
        else:
            assert future.result() == 8


def test_no_grad_holds_in_its_own_thread_only(tracking: Any) -> None:
    x = burn.ones(2, device=tracking).require_grad()
    inside, done = threading.Event(), threading.Event()
    seen: list[bool] = []

    def other() -> None:
        inside.wait(5)
        seen.append((x * 2).is_tracked())
        done.set()

    worker = threading.Thread(target=other)
    worker.start()
    with burn.no_grad():
        assert not (x * 2).is_tracked()
        inside.set()
        done.wait(5)
    worker.join()
    assert seen == [True]
    assert (x * 2).is_tracked()


def test_a_tensor_recorded_in_one_thread_is_read_in_another(device: Any) -> None:
    x = burn.ones(8, device=device)
    for _ in range(10):
        x = x * 1.5
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: x.sum().item(), range(8)))
    assert results == [pytest.approx(8 * 1.5**10)] * 8
