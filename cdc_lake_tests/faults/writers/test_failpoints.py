"""A process is killed at a failpoint; after the next run, the content is the same as without the kill.

Two passes over the failpoints: in the first run of a new pipeline, where each process is killed one step later than
the previous one; and while the pipeline is streaming, where the next run must repair and the result is checked, in
triggered and in continuous mode. CI draws some failpoints of each pass, a full run has all.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import get_args

import pytest
from confluent_kafka import Producer

from cdc_lake.contract.failpoints import REGISTRY, VARIABLE
from cdc_lake.pipeline.spec.pipeline import Mode
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.faults.writers.writer_process import Died, Failed, Writer
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

# The stage that reaches a failpoint, by the first part of the failpoint's name.
STAGES = {
    **{"source": "source", "topic": "topic", "land": "raw", "upsert": "lake", "commit": "lake", "lake": "lake"},
    **{"dataset": "dataset", "dashboard": "dashboard"},
}
WHILE_STREAMING = [name for name in REGISTRY if name.startswith(("land.", "upsert.", "commit."))]
CASES: list[tuple[Mode, str]] = [(mode, name) for mode in get_args(Mode) for name in WHILE_STREAMING]
# Of WHILE_STREAMING, those that leave most behind when there is no manifest and no table yet.
IN_A_FIRST_RUN = [
    name
    for name in REGISTRY
    if name.startswith(("source.", "topic.", "lake.", "dataset.", "dashboard."))
    or name in {"land.before_manifest", "commit.before_lease_check", "commit.after_lease_check"}
]
RESETS = [name for name in REGISTRY if name.startswith("reset.")]
FIRST_KILLS = drawn(IN_A_FIRST_RUN, in_ci=2)
# Records that become dead letters: at landing, and in the upsert.
BAD_RECORDS = {"land.before_dead_letters": b"", "upsert.before_dead_letters": b"no JSON"}


def stage(name: str) -> str:
    """Return the stage that reaches a failpoint."""
    return STAGES[name.partition(".")[0]]


def on_executors(name: str) -> bool:
    """Return whether a failpoint is in Spark's Python workers, whose environment is that of the writer's start."""
    return name in {"land.before_object", "land.after_object"}


def die(writer: Writer, name: str, *stages: str) -> None:
    """Materialise stages until the process is killed at a failpoint; if a Python worker is killed, the run fails."""
    if on_executors(name):
        writer.do(writer_actions.land_by_spark)
        with pytest.raises(Failed, match="Python worker exited unexpectedly"):
            writer.do(writer_actions.materialise_unchecked, *stages)
        return
    kill_at(writer, name, writer_actions.materialise_unchecked, *stages)


def kill_at(writer: Writer, name: str, work: Callable[..., object], *args: str) -> None:
    """Let the writer work until it is killed at a failpoint in its own process."""
    writer.do(writer_actions.arm, f"{name}=kill")
    with pytest.raises(Died) as died:
        writer.do(work, *args)
    assert died.value.code == -signal.SIGKILL


def at(stack: NorthwindStack, name: str) -> Writer:
    """Start a writer that can be killed at a failpoint."""
    return stack.writer(**({VARIABLE: f"{name}=kill"} if on_executors(name) else {}))


@pytest.fixture(scope="module", autouse=True)
def from_nothing(stack: NorthwindStack) -> None:
    """Reset the pipeline, since other tests use it on this stack."""
    with stack.writer() as writer:
        writer.do(writer_actions.reset)


@pytest.fixture(scope="module")
def previous() -> Iterator[list[Writer]]:
    """Return a list with the writer that repaired the previous kill; the next test kills it."""
    writers: list[Writer] = []
    yield writers
    for writer in writers:
        writer.__exit__()


def create_all(writer: Writer) -> None:
    """Materialise everything; every check must pass."""
    checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert not [name for name, green in checks.items() if not green]


@pytest.mark.parametrize("name", FIRST_KILLS)
def test_a_first_run_is_killed_at_a_failpoint(stack: NorthwindStack, name: str, count_trials: CountTrials) -> None:
    stages, place = list(writer_actions.STAGES), FIRST_KILLS.index(name)
    since = stages.index(stage(FIRST_KILLS[place - 1])) if place else 0
    with at(stack, name) as writer:
        if earlier := stages[since : stages.index(stage(name))]:
            writer.do(writer_actions.materialise_unchecked, *earlier)
        die(writer, name, stage(name))
    count_trials("kills at failpoints", 1)


def test_the_first_run_completes_after_the_kills(stack: NorthwindStack) -> None:
    with stack.writer() as writer:
        create_all(writer)
    stack.check_raw()
    stack.check_lake()
    assert not stack.dead_letters()


@pytest.mark.parametrize(("mode", "name"), drawn(CASES, in_ci=3))
def test_a_run_that_is_killed_at_a_failpoint_is_repaired_by_the_next(
    stack: NorthwindStack, mode: Mode, name: str, previous: list[Writer], count_trials: CountTrials
) -> None:
    changed = stack.change(CASES.index((mode, name)) + 1)
    if name in BAD_RECORDS:
        producer = Producer({"bootstrap.servers": stack.resources["kafka"].bootstrap})
        producer.produce(stack.table.topic, BAD_RECORDS[name])
        assert producer.flush(30) == 0
    # In continuous mode, small batches are landed without executors; in triggered mode, die() makes Spark land them.
    fresh = mode == "triggered" and on_executors(name)
    writer = previous.pop() if previous and not fresh else at(stack, name)
    with writer:
        writer.do(writer_actions.barrier)
        if mode == "continuous":
            kill_at(writer, name, writer_actions.run_continuously)
        else:
            if stage(name) == "lake":
                writer.do(writer_actions.materialise_unchecked, "raw")
            die(writer, name, stage(name))
    for used in previous:
        used.__exit__()
    previous[:] = [stack.writer()]
    if mode == "continuous":
        previous[0].do(writer_actions.run_continuously)
    else:
        previous[0].do(writer_actions.materialise_unchecked, "raw", *(["lake"] if stage(name) == "lake" else []))
    stack.check_raw()
    if mode == "continuous" or stage(name) == "lake":
        stack.check_lake()
    assert len(stack.dead_letters()) == (name in BAD_RECORDS)
    stack.drop_dead_letters()
    count_trials("kills at failpoints", 1)
    count_trials("orders changed around kills at failpoints", changed)


@pytest.mark.parametrize("name", drawn(RESETS, in_ci=1))
def test_a_reset_is_killed_at_a_failpoint(stack: NorthwindStack, name: str, count_trials: CountTrials) -> None:
    with stack.writer() as writer:
        kill_at(writer, name, writer_actions.reset)
    count_trials("kills at failpoints", 1)


def test_a_reset_completes_after_the_kills_and_all_is_created_again(stack: NorthwindStack) -> None:
    with stack.writer() as writer:
        writer.do(writer_actions.reset)
        assert writer.do(writer_actions.reset) == []
        create_all(writer)
    stack.check_raw()
    stack.check_lake()
    assert not stack.dead_letters()


def test_every_failpoint_is_tested() -> None:
    """In this file, or in test_polled_kills.py, test_resnapshot_kills.py, faults/jobs/test_dead_letters.py,
    faults/jobs/upsert/test_upsert_writers.py, and unit/pipeline/assets/test_added_table.py.
    """
    others = ("join.", "poll.", "reconcile.", "resnapshot.", "replay.", "recover.", "refined.")
    elsewhere = {name for name in REGISTRY if name.startswith(others)}
    assert {*IN_A_FIRST_RUN, *WHILE_STREAMING, *RESETS, *elsewhere} == set(REGISTRY)
