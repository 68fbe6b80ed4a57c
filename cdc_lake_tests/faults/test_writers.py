"""Writers that believe too long that they are alone, answers that get lost, and a topic that is another one."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.table import timeline
from cdc_lake.instance import dagster_home
from cdc_lake_tests.faults import writer_actions
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.writer_process import Failed, Writer
from cdc_lake_tests.s3_fault_proxy import LoseAnswer, faulty_wire
from cdc_lake_tests.trial_counts import Tried

LEASE_SECONDS = 3.0


@pytest.fixture(scope="module")
def first(bench: Bench) -> Iterator[Writer]:
    """A writer that has made the whole pipeline."""
    with bench.writer() as writer:
        writer.do(writer_actions.carry, *writer_actions.STAGES[:-1])
        yield writer


@pytest.fixture(scope="module")
def second(bench: Bench, first: Writer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """Another one, from a Dagster home of its own."""
    assert first.pid
    home = tmp_path_factory.mktemp("dagster")
    shutil.copy(dagster_home() / "dagster.yaml", home)
    with bench.writer(**writer_actions.elsewhere(home)) as writer:
        yield writer


def landed(bench: Bench, writer: Writer, number: int) -> None:
    """Change something at the source and land it."""
    bench.change(number)
    writer.do(writer_actions.barrier)
    writer.do(writer_actions.carry, "raw")


def applied(bench: Bench) -> timeline.Commit:
    """The table's newest commit."""
    commit = timeline.last_commit(bench.store, bench.table.lake_prefix)
    assert commit is not None
    return commit


@pytest.mark.parametrize("place", ["upsert.before_write", "commit.before_lease_check", "commit.after_lease_check"])
def test_a_writer_that_slept_through_its_lease(
    bench: Bench, first: Writer, second: Writer, place: str, tried: Tried
) -> None:
    """It wakes up, commits nothing and says that it lost its lease; what the other one wrote stays."""
    landed(bench, first, 40 + len(place))
    with bench.writer() as sleeper:
        sleeper.do(writer_actions.arm, f"{place}=pause")
        sleeper.begin(writer_actions.apply, LEASE_SECONDS, 0.0)
        sleeper.wait_stopped()
        done = second.do(writer_actions.apply, LEASE_SECONDS, 2 * LEASE_SECONDS)
        assert done["instant"] is not None
        sleeper.send(signal.SIGCONT)
        with pytest.raises(Failed) as failed:
            sleeper.end()
    assert failed.value.kind == "LeaseLostError", failed.value
    assert applied(bench).instant == done["instant"]
    bench.judge_lake()
    landed(bench, first, 70 + len(place))
    first.do(writer_actions.apply, LEASE_SECONDS, 2 * LEASE_SECONDS)
    bench.judge_lake()
    tried("writers that slept through their lease", 1)


def test_two_dagster_homes_at_once(bench: Bench, first: Writer, second: Writer, tried: Tried) -> None:
    """Both materialise raw and lake at the same moment: one waits for the other, and nothing is doubled."""
    for number in range(3):
        changed = bench.change(100 + number)
        first.do(writer_actions.barrier)
        for writer in (first, second):
            writer.begin(writer_actions.carry, "raw", "lake")
        for writer in (first, second):
            writer.end()
        bench.judge_raw()
        bench.judge_lake()
        tried("changes that two Dagster homes carried at once", changed)


def test_a_writer_that_holds_the_table_for_long(bench: Bench, first: Writer, second: Writer) -> None:
    """Another one waits as long as it is told to, then is refused by name."""
    landed(bench, first, 110)
    with bench.writer() as holder:
        holder.do(writer_actions.arm, "upsert.after_lease=pause")
        holder.begin(writer_actions.apply, 60.0, 0.0)
        holder.wait_stopped()
        with pytest.raises(Failed, match=rf"writer {holder.pid} writes here and holds leases/northwind/cdc_events"):
            second.do(writer_actions.apply, LEASE_SECONDS, 1.0)
        holder.send(signal.SIGCONT)
        assert holder.end()["instant"] is not None
    assert second.do(writer_actions.apply, LEASE_SECONDS, 10.0)["instant"] is None
    bench.judge_lake()


def test_lost_answers_to_conditional_puts(bench: Bench, first: Writer, tried: Tried) -> None:
    """Each put succeeds, its answer is lost, and the client's own retry is refused: it was the writer's own."""
    bench.change(120)
    first.do(writer_actions.barrier)
    with faulty_wire(str(bench.resources["store"].endpoint_url)) as wire:
        wire.rule = lambda request: LoseAnswer() if (request.method, request.number) == ("PUT", 1) else None
        report = first.do(writer_actions.land_through, wire.endpoint)
    lost = {request.path for request, _ in wire.met}
    assert report["objects"] > 1
    assert len(lost) > report["objects"]  # the objects, and the manifest
    assert all(wire.answered["PUT", path, 200] == 1 and wire.answered["PUT", path, 412] >= 1 for path in lost)
    bench.judge_raw()
    first.do(writer_actions.carry, "raw", "lake")
    bench.judge_lake()
    tried("lost answers to conditional puts", len(lost))


def test_a_topic_that_was_deleted_and_made_again(bench: Bench, first: Writer) -> None:
    """Loud, and nothing is landed or applied; a reset starts over."""
    bound = bench.resources
    kafka, table = bound["kafka"], bench.table
    bound["connect"].delete(table.pipeline.connector, offsets=False)  # it would make the topic again by itself
    chain = Chain(bench.store, table.pipeline.name, table.topic)
    manifests, commit = chain.length(), applied(bench)
    kafka.delete_topic(table.topic)
    kafka.ensure_topic(table.topic, 1, {"cleanup.policy": "delete"})
    with pytest.raises(Failed, match=rf"topic {table.topic} was deleted and re-created .*Nothing was landed"):
        first.do(writer_actions.carry, "raw")
    assert chain.length() == manifests
    assert applied(bench) == commit
    first.do(writer_actions.reset)
    first.do(writer_actions.carry, *writer_actions.STAGES[:-1])
    bench.judge_raw()
    bench.judge_lake()


def test_the_homes_were_two(first: Writer, second: Writer, bench: Bench) -> None:
    assert first.do(writer_actions.dagster_folder) == str(Path(bench.cli.environment["CDC_LAKE_HOME"]) / "dagster")
    assert second.do(writer_actions.dagster_folder) != first.do(writer_actions.dagster_folder)
