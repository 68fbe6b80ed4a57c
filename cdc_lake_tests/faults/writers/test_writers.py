"""Writers whose lease has expired, concurrent writers, lost answers of the store, and a re-created topic."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.table import timeline
from cdc_lake.instance import dagster_home
from cdc_lake.pipeline.spec.pipeline import Mode
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.faults.writers.writer_process import Failed, Writer
from cdc_lake_tests.helpers.s3_fault_proxy import LoseAnswer, fault_proxy
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn, size
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 2

LEASE_SECONDS = 3.0
WRITING = ("upsert.before_write", "commit.before_lease_check", "commit.after_lease_check")


@pytest.fixture(scope="module")
def first(stack: NorthwindStack) -> Iterator[Writer]:
    """Return a writer that has materialised the pipeline."""
    with stack.writer() as writer:
        writer.do(writer_actions.materialise_unchecked, *writer_actions.STAGES[:-1])
        yield writer


@pytest.fixture(scope="module")
def second(stack: NorthwindStack, first: Writer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """Return a writer with its own Dagster home."""
    assert first.pid
    home = tmp_path_factory.mktemp("dagster")
    shutil.copy(dagster_home() / "dagster.yaml", home)
    with stack.writer(**writer_actions.elsewhere(home)) as writer:
        yield writer


def landed(stack: NorthwindStack, writer: Writer, number: int) -> None:
    """Change rows at the source, and land the changes."""
    stack.change(number)
    writer.do(writer_actions.barrier)
    writer.do(writer_actions.materialise_unchecked, "raw")


def applied(stack: NorthwindStack) -> timeline.Commit:
    """Return the table's newest commit."""
    commit = timeline.last_commit(stack.store, stack.table.lake_prefix)
    assert commit is not None
    return commit


@pytest.mark.parametrize("place", drawn(WRITING, in_ci=1))
def test_a_writer_paused_beyond_its_lease_commits_nothing(
    stack: NorthwindStack, first: Writer, second: Writer, place: str, count_trials: CountTrials
) -> None:
    """It fails because it lost its lease, and the other writer's commit stays."""
    landed(stack, first, 40 + len(place))
    with stack.writer() as paused:
        paused.do(writer_actions.arm, f"{place}=pause")
        paused.begin(writer_actions.apply, LEASE_SECONDS, 0.0)
        paused.wait_stopped()
        done = second.do(writer_actions.apply, LEASE_SECONDS, 2 * LEASE_SECONDS)
        assert done["commit"] is not None
        paused.send(signal.SIGCONT)
        with pytest.raises(Failed) as failed:
            paused.end()
    assert failed.value.kind == "LeaseLostError", failed.value
    assert applied(stack).instant == done["commit"]["instant"]
    stack.check_lake()
    landed(stack, first, 70 + len(place))
    first.do(writer_actions.apply, LEASE_SECONDS, 2 * LEASE_SECONDS)
    stack.check_lake()
    count_trials("writers paused beyond their lease", 1)


@pytest.mark.parametrize("mode", drawn(get_args(Mode), in_ci=1))
def test_two_dagster_homes_write_at_the_same_time(
    stack: NorthwindStack, first: Writer, second: Writer, mode: Mode, count_trials: CountTrials
) -> None:
    """One waits for the other, and no row is doubled; `mode` is the second writer's."""
    for number in range(size(in_ci=1, full=3)):
        changed = stack.change(100 + number + 4 * get_args(Mode).index(mode))
        first.do(writer_actions.barrier)
        first.begin(writer_actions.materialise_unchecked, "raw", "lake")
        if mode == "continuous":
            second.begin(writer_actions.run_continuously)
        else:
            second.begin(writer_actions.materialise_unchecked, "raw", "lake")
        for writer in (first, second):
            writer.end()
        stack.check_raw()
        stack.check_lake()
        count_trials("changes applied by two Dagster homes at the same time", changed)


def test_a_writer_waits_for_the_lease_for_a_bounded_time(stack: NorthwindStack, first: Writer, second: Writer) -> None:
    """The error names the writer that has the lease."""
    landed(stack, first, 110)
    with stack.writer() as holder:
        holder.do(writer_actions.arm, "upsert.after_lease=pause")
        # Longer than the other writer needs to start Spark.
        holder.begin(writer_actions.apply, 600.0, 0.0)
        holder.wait_stopped()
        with pytest.raises(Failed, match=rf"writer {holder.pid} holds leases/northwind/cdc_events"):
            second.do(writer_actions.apply, LEASE_SECONDS, 1.0)
        holder.send(signal.SIGCONT)
        assert holder.end()["commit"] is not None
    assert second.do(writer_actions.apply, LEASE_SECONDS, 10.0)["commit"] is None
    stack.check_lake()


def test_lost_answers_to_conditional_puts_are_no_conflicts(
    stack: NorthwindStack, first: Writer, count_trials: CountTrials
) -> None:
    """Each put succeeds, its answer is lost, and the client's retry is rejected because of the writer's own object."""
    stack.change(120)
    first.do(writer_actions.barrier)
    with fault_proxy(str(stack.resources["store"].endpoint_url)) as proxy:
        proxy.rule = lambda request: LoseAnswer() if (request.method, request.number) == ("PUT", 1) else None
        report = first.do(writer_actions.land_through, proxy.endpoint)
    lost = {request.path for request, _ in proxy.injected}
    assert report["objects"] > 1
    assert len(lost) > report["objects"]  # the objects, and the manifest
    assert all(proxy.answered["PUT", path, 200] == 1 and proxy.answered["PUT", path, 412] >= 1 for path in lost)
    stack.check_raw()
    first.do(writer_actions.materialise_unchecked, "raw", "lake")
    stack.check_lake()
    count_trials("lost answers to conditional puts", len(lost))


def test_a_recreated_topic_is_refused_until_a_reset(stack: NorthwindStack, first: Writer) -> None:
    bound = stack.resources
    kafka, table = bound["kafka"], stack.table
    bound["connect"].delete(table.pipeline.connector, offsets=False)  # it would create the topic again
    chain = Chain(stack.store, table.pipeline.name, table.topic)
    manifests, commit = chain.length(), applied(stack)
    kafka.delete_topic(table.topic)
    kafka.ensure_topic(table.topic, 1, {"cleanup.policy": "delete"})
    with pytest.raises(Failed, match=rf"topic {table.topic}: it was deleted and re-created .*Nothing was landed"):
        first.do(writer_actions.materialise_unchecked, "raw")
    assert chain.length() == manifests
    assert applied(stack) == commit
    first.do(writer_actions.reset)
    first.do(writer_actions.materialise_unchecked, *writer_actions.STAGES[:-1])
    stack.check_raw()
    stack.check_lake()


def test_the_writers_have_two_dagster_homes(first: Writer, second: Writer, stack: NorthwindStack) -> None:
    assert first.do(writer_actions.dagster_folder) == str(Path(stack.cli.environment["CDC_LAKE_HOME"]) / "dagster")
    assert second.do(writer_actions.dagster_folder) != first.do(writer_actions.dagster_folder)
