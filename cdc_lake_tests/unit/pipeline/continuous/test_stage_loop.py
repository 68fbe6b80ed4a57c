"""A loop repeats its step, waits without work, survives errors, and does what is left to do when it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.continuous import stage_loop
from cdc_lake.pipeline.continuous.stage_loop import StageLoop

BOUND = 30.0
LONG = 600.0
"""A pause that no test waits for."""


class Work:
    """Results for the steps of a loop, in order; an exception is raised. Without one there is nothing to do."""

    def __init__(self) -> None:
        self.pending: Queue[int | Exception] = Queue()
        self.asked: Queue[None] = Queue()

    def step(self) -> int | None:
        found = None if self.pending.empty() else self.pending.get()
        self.asked.put(None)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def loops() -> Iterator[list[StageLoop[int]]]:
    """Loops to stop at the end of the test."""
    started: list[StageLoop[int]] = []
    yield started
    for loop in started:
        loop.stop()
        loop.join()


def start(loops: list[StageLoop[int]], work: Work, pause: float = LONG, *done: threading.Event) -> StageLoop[int]:
    loop = StageLoop("land orders", work.step, threading.Semaphore(1), pause, *(event.set for event in done))
    loops.append(loop)
    loop.start()
    work.asked.get(timeout=BOUND)
    return loop


def test_a_loop_works_when_it_is_woken(work: Work, loops: list[StageLoop[int]]) -> None:
    done = threading.Event()
    loop = start(loops, work, LONG, done)
    assert not done.is_set()
    for each in (1, 2, 3):
        work.pending.put(each)
        loop.wake()
        work.asked.get(timeout=BOUND)
    loop.stop()
    loop.join()
    assert done.is_set()
    assert loop.unreported() == ([1, 2, 3], None)
    loop.reported(2)
    assert loop.unreported() == ([3], None)


def test_a_loop_is_busy_from_the_call_until_the_end_of_its_step(loops: list[StageLoop[int]]) -> None:
    begun, release = threading.Event(), threading.Event()

    def step() -> int:
        begun.set()
        assert release.wait(BOUND)
        return 1

    loop = StageLoop("apply orders", step, threading.Semaphore(1), LONG)
    loops.append(loop)
    loop.wake()
    assert loop.busy
    loop.start()
    assert begun.wait(BOUND)
    assert loop.busy
    release.set()
    loop.stop()
    loop.join()
    assert not loop.busy


def test_a_loop_asks_again_after_its_pause(work: Work, loops: list[StageLoop[int]]) -> None:
    loop = start(loops, work, 0.01)
    work.pending.put(7)
    while not (found := loop.unreported()[0]):
        work.asked.get(timeout=BOUND)
    assert found == [7]


def test_a_stopped_loop_does_what_is_left(work: Work, loops: list[StageLoop[int]]) -> None:
    loop = start(loops, work)
    work.pending.put(1)
    loop.stop()
    loop.join()
    assert loop.unreported() == ([1], None)


def test_a_failed_step_is_repeated_after_a_pause(
    work: Work, loops: list[StageLoop[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []

    def pause(failures: int, longest: int) -> float:
        assert longest == 60
        pauses.append(failures)
        return 0.01

    monkeypatch.setattr(stage_loop, "backoff", pause)
    loop = start(loops, work)
    for each in (ContractError("no topic"), ContractError("no topic"), 5):
        work.pending.put(each)
    loop.wake()
    for _ in range(3):
        work.asked.get(timeout=BOUND)
    work.pending.put(ContractError("no lease"))
    loop.wake()
    work.asked.get(timeout=BOUND)
    loop.stop()
    loop.join()
    assert pauses == [1, 2, 1]
    assert loop.unreported()[0] == [5]


def test_an_error_is_kept_until_a_step_succeeds(work: Work, loops: list[StageLoop[int]]) -> None:
    loop = start(loops, work)
    work.pending.put(error := ContractError("no topic"))
    loop.stop()
    loop.join()
    assert loop.unreported() == loop.unreported() == ([], error)


def test_steps_of_several_loops_wait_for_each_other(work: Work, loops: list[StageLoop[int]]) -> None:
    step_limit, inside, release = threading.Semaphore(1), threading.Event(), threading.Event()

    def slow() -> int | None:
        inside.set()
        assert release.wait(BOUND)
        return None

    first, second = StageLoop("a", slow, step_limit, LONG), StageLoop("b", work.step, step_limit, LONG)
    loops += [first, second]
    first.start()
    assert inside.wait(BOUND)
    second.start()
    assert work.asked.empty()
    release.set()
    work.asked.get(timeout=BOUND)
