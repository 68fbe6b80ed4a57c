"""At every failpoint: a process that is killed there, a run after it, and the same content as if nothing had been.

Two passes over the same places: on the way up, where each run of a new pipeline dies one step further than the one
before it, and in the stream, where one run dies, the next one must repair, and the result is judged each time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from cdc_lake.contract.failpoints import REGISTRY, VARIABLE
from cdc_lake_tests.faults import writer_actions
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.writer_process import Died, Failed, Writer
from cdc_lake_tests.trial_counts import Tried

# What is materialised to get to a place, by the first part of its name.
STAGES = {
    **{"source": "source", "topic": "topic", "land": "raw", "upsert": "lake", "commit": "lake", "lake": "lake"},
    **{"dataset": "dataset", "dashboard": "dashboard"},
}
IN_THE_STREAM = [name for name in REGISTRY if name.startswith(("land.", "upsert.", "commit."))]
# Of those in the stream, the ones that leave most behind where there is no manifest and no table yet.
ON_THE_WAY_UP = [
    name
    for name in REGISTRY
    if name.startswith(("source.", "topic.", "lake.", "dataset.", "dashboard."))
    or name in {"land.before_manifest", "commit.before_lease_check", "commit.after_lease_check"}
]
RESETS = [name for name in REGISTRY if name.startswith("reset.")]
# A record of each kind that becomes a dead letter: when it is landed, and when it is applied.
POISON = {"land.before_dead_letters": b"", "upsert.before_dead_letters": b"no JSON"}


def stage(name: str) -> str:
    """The stage that gets to a place."""
    return STAGES[name.partition(".")[0]]


def on_executors(name: str) -> bool:
    """Whether a place is in Spark's Python workers, whose environment is that of the writer's start."""
    return name in {"land.before_object", "land.after_object"}


def die(writer: Writer, name: str, *stages: str) -> None:
    """Materialise stages until the process dies at a place; where a Python worker dies there, the run fails."""
    if on_executors(name):
        with pytest.raises(Failed, match="Python worker exited unexpectedly"):
            writer.do(writer_actions.carry, *stages)
        return
    writer.do(writer_actions.arm, f"{name}=kill")
    with pytest.raises(Died) as died:
        writer.do(writer_actions.carry, *stages)
    assert died.value.code == -signal.SIGKILL


def at(bench: Bench, name: str) -> Writer:
    """A new writer that can die at a place."""
    return bench.writer(**({VARIABLE: f"{name}=kill"} if on_executors(name) else {}))


@pytest.fixture(scope="module", autouse=True)
def from_nothing(bench: Bench) -> None:
    """Whatever other tests made on this stack: there is no pipeline yet."""
    with bench.writer() as writer:
        writer.do(writer_actions.reset)


@pytest.fixture(scope="module")
def standing() -> Iterator[list[Writer]]:
    """The writer that repaired what the one before it left, which is the next one to die."""
    writers: list[Writer] = []
    yield writers
    for writer in writers:
        writer.__exit__()


def make_all(writer: Writer) -> None:
    """Materialise everything; every check is green."""
    checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert not [name for name, green in checks.items() if not green]


@pytest.mark.parametrize("name", ON_THE_WAY_UP)
def test_on_the_way_up(bench: Bench, name: str, tried: Tried) -> None:
    with at(bench, name) as writer:
        die(writer, name, stage(name))
    tried("kills at failpoints", 1)
    following = ON_THE_WAY_UP[ON_THE_WAY_UP.index(name) + 1 :]
    if not following or stage(following[0]) != stage(name):
        with bench.writer() as writer:
            writer.do(writer_actions.carry, stage(name))


def test_the_top(bench: Bench) -> None:
    with bench.writer() as writer:
        make_all(writer)
    bench.judge_raw()
    bench.judge_lake()
    assert not bench.dead_letters()


@pytest.mark.parametrize("name", IN_THE_STREAM)
def test_in_the_stream(bench: Bench, name: str, standing: list[Writer], tried: Tried) -> None:
    changed = bench.change(IN_THE_STREAM.index(name) + 1)
    if name in POISON:
        producer = Producer({"bootstrap.servers": bench.resources["kafka"].bootstrap})
        producer.produce(bench.table.topic, POISON[name])
        assert producer.flush(30) == 0
    writer = standing.pop() if standing and not on_executors(name) else at(bench, name)
    with writer:
        writer.do(writer_actions.barrier)
        if stage(name) == "lake":
            writer.do(writer_actions.carry, "raw")
        die(writer, name, stage(name))
    for used in standing:
        used.__exit__()
    standing[:] = [bench.writer()]
    standing[0].do(writer_actions.carry, "raw", *(["lake"] if stage(name) == "lake" else []))
    bench.judge_raw()
    if stage(name) == "lake":
        bench.judge_lake()
    assert len(bench.dead_letters()) == (name in POISON)
    bench.drop_dead_letters()
    tried("kills at failpoints", 1)
    tried("orders changed around kills at failpoints", changed)


@pytest.mark.parametrize("name", RESETS)
def test_while_starting_over(bench: Bench, name: str, tried: Tried) -> None:
    with bench.writer() as writer:
        writer.do(writer_actions.arm, f"{name}=kill")
        with pytest.raises(Died) as died:
            writer.do(writer_actions.reset)
        assert died.value.code == -signal.SIGKILL
    tried("kills at failpoints", 1)


def test_nothing_is_left_and_all_is_made_again(bench: Bench) -> None:
    with bench.writer() as writer:
        writer.do(writer_actions.reset)
        assert writer.do(writer_actions.reset) == []
        make_all(writer)
    bench.judge_raw()
    bench.judge_lake()
    assert not bench.dead_letters()


def test_every_failpoint_is_tried() -> None:
    """Here, or in test_slot.py, faults/jobs/test_dead_letters.py and faults/jobs/test_upsert_writers.py."""
    elsewhere = {name for name in REGISTRY if name.startswith(("resnapshot.", "replay.", "recover."))}
    assert {*ON_THE_WAY_UP, *IN_THE_STREAM, *RESETS, *elsewhere} == set(REGISTRY)
