"""A pipeline that runs by its sensors under traffic while processes are killed; afterwards the result is checked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import history, timeline
from cdc_lake.pipeline import loading, table_progress
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake.pipeline.spec.pipeline import Mode
from cdc_lake_tests.faults.background_traffic import traffic
from cdc_lake_tests.faults.kills.dagster_dev import DagsterDev
from cdc_lake_tests.faults.kills.kill_plan import Kill
from cdc_lake_tests.faults.kills.lake_lag import LagWatch, percentile
from cdc_lake_tests.faults.kills.process_killer import ProcessKiller
from cdc_lake_tests.faults.northwind_stack import FAULTS, NorthwindStack
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.helpers.source_changes.order_traffic import Counts

SETTLE_SECONDS = 600.0
PAUSE_SECONDS = 600.0
"""Longer than the backoff of a sensor (pipeline/automation/run_requests.py) and the run that follows."""
Print = Callable[[str], None]


@dataclass
class CampaignResult:
    """Counts and durations of a campaign."""

    seed: int
    traffic: Counts = field(default_factory=Counts)
    kills: dict[str, int] = field(default_factory=dict)
    repairs: list[float] = field(default_factory=list)
    dagster_starts: int = 0
    lag: Sequence[float] = ()
    failed_measurements: int = 0
    """Readings of the lag that failed because a component was down."""
    manifests_during_kills: int = 0
    manifests: int = 0
    records: int = 0
    commits_during_kills: int = 0
    settle_seconds: float = 0.0
    checks: int = 0
    verified: Counter[str] = field(default_factory=Counter)
    merged: Counter[str] = field(default_factory=Counter)
    """The commits of merge-on-read tables by Hudi's operation."""

    def lines(self) -> list[str]:
        """Return the result as lines of text."""
        done = self.traffic
        lag = " / ".join(f"{percentile(self.lag, share):.0f}" for share in (0.5, 0.95, 1.0))
        each = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return [
            f"seed {self.seed}",
            f"{done.changes:,} changes in {done.transactions:,} transactions, {done.rate:.0f} changes/s; "
            f"{done.rolled_back} rolled back, {done.refused} refused, {done.lost} lost, "
            f"{done.ambiguous} commits without an answer, {done.reconnects} reconnects",
            f"{sum(self.kills.values())} kills: {each}",
            f"{len(self.repairs)} times `cdc-lake up`, {max(self.repairs, default=0):.0f} s at most; "
            f"`cdc-lake dev` started {self.dagster_starts} times",
            f"lag of the lake's watermark p50 / p95 / max: {lag} s; "
            f"{len(self.lag)} measurements, {self.failed_measurements} of them failed",
            f"during the kills {self.manifests_during_kills} batches were landed, and at least "
            f"{self.commits_during_kills} committed to the lake; "
            f"{self.manifests} batches with {self.records:,} records at the end",
            f"{self.settle_seconds:.0f} s from the last change until the lake had all changes",
            f"{self.checks} checks green; {self.verified['compared']:,} rows verified: "
            + ", ".join(f"{self.verified[name]} {name}" for name in FAULTS),
            *(
                [f"merge-on-read: {self.merged['upsert']} upserts, {self.merged['compact']} compactions"]
                if self.merged
                else []
            ),
        ]


def run(
    stack: NorthwindStack,
    seed: int,
    plan: Iterator[Kill],
    enough: Callable[[int], bool],
    rate: float,
    report: Print,
    pause_after: int | None = None,
    mode: Mode = "triggered",
    required: Collection[str] = (),
) -> CampaignResult:
    """Run a campaign in a mode until `enough` returns true for the number of kills.

    A required target that did not run in its turns is killed at the end, when it does.
    After each `pause_after` kills there is a pause until the lake has a new commit: without pauses no run would end,
    and only the beginning of runs would be tested. Traffic continues during the pause.
    Raises AssertionError for anything lost, doubled or not repaired.
    """
    began = time.monotonic()

    def log(text: str) -> None:
        report(f"{time.monotonic() - began:6.1f} s  {text}")

    result = CampaignResult(seed)
    with stack.writer() as writer:
        writer.do(writer_actions.materialise, *writer_actions.STAGES)
    chain = Chain(stack.store, stack.table.pipeline.name, stack.table.topic)
    before = chain.length()
    log("the pipeline is materialised; its sensors start")
    environment = {**stack.cli.environment, loading.MODE_VARIABLE: mode}
    dagster = DagsterDev(replace(stack.cli, environment=environment), stack.folder / "dev.log")
    try:
        dagster.ensure()
        dagster.wait_ready()
        with ProcessKiller(stack.cli, dagster, log) as killer, traffic(stack, rate, seed) as changing:
            with LagWatch(stack) as watch:
                last_pause = 0
                while not enough(killer.kills.total()):
                    if pause_after is not None and killer.kills.total() - last_pause >= pause_after:
                        last_pause = killer.kills.total()
                        log(f"a pause of {_pause(watch, stack):.0f} s, until the lake had a new commit")
                    killer.kill(next(plan))
                    assert not killer.faults, killer.faults
                for target in sorted(set(required) - set(killer.kills)):
                    ends = time.monotonic() + PAUSE_SECONDS
                    while not killer.kills[target]:
                        assert time.monotonic() < ends, f"{target} did not run within {PAUSE_SECONDS:.0f} s"
                        killer.wait_repaired()
                        killer.kill(Kill(0, (target,), 0))
            killer.wait_repaired()
            result.traffic = changing.stop()
            result.kills, result.repairs, result.lag = dict(killer.kills), killer.repairs, watch.seconds
            result.failed_measurements = watch.failed_measurements
            assert not watch.backwards, f"the watermark went back: {watch.backwards}"
            result.manifests_during_kills = chain.length() - before
            result.commits_during_kills = max(0, len(watch.checkpoints) - 1)
            # Otherwise no run was killed at work, and the checks below would prove nothing.
            assert result.traffic.changes > 0, "nothing was written during the kills"
            assert result.manifests_during_kills > 0, "nothing was landed during the kills"
            assert result.commits_during_kills > 0, "nothing was applied during the kills"
            assert result.failed_measurements < len(result.lag), "every measurement of the lag failed"
            log(f"the kills end after {sum(result.kills.values())} kills and {result.traffic.changes:,} changes")
            result.settle_seconds = _settle(stack)
            log(f"the lake has all changes after {result.settle_seconds:.0f} s")
    finally:
        dagster.stop()
        result.dagster_starts = dagster.starts
    merged = [each for each in stack.table.in_targets if each.is_merge_on_read]
    with stack.writer() as writer:
        if merged:  # a batch with inserts rewrites the table's small base file, one of updates alone is in a log file
            stack.change(1)
            writer.do(writer_actions.barrier)
        checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert all(checks.values()), f"red: {[name for name, green in checks.items() if not green]}"
    result.checks = len(checks)
    if merged:  # a compaction that a kill has interrupted is completed
        stack.cli.run("cdc-lake", "compact", stack.table.pipeline.name)
        result.merged = Counter(operation for each in merged for operation in _operations(stack.store, each))
        assert result.merged["upsert"], "no change is in a log file"
        assert result.merged["compact"], "no log file was compacted"
    stack.check_raw()
    result.verified = stack.verify()
    assert not stack.dead_letters()
    manifests = list(chain.since(0))
    result.manifests, result.records = len(manifests), sum(manifest.records for manifest in manifests)
    log("the result is checked")
    return result


def _operations(store: ObjectStore, table: PipelineTable) -> Iterator[str]:
    """Yield the operation of each commit in a table's timeline."""
    for instant in history.commits(store, table.lake_prefix):
        yield timeline.commit_at(store, table.lake_prefix, instant).operation


def _pause(watch: LagWatch, stack: NorthwindStack) -> float:
    """Wait for a new commit, and return the seconds."""
    began, before = time.monotonic(), watch.checkpoints.copy()
    waiting = Retrying(
        retry=retry_if_result(lambda new: not new), stop=stop_after_delay(PAUSE_SECONDS), wait=wait_fixed(0.5)
    )
    try:
        waiting(lambda: watch.checkpoints - before)
    except RetryError:
        raise AssertionError(
            f"no process was killed for {PAUSE_SECONDS:.0f} s, and the lake has no new commit after those of the "
            f"manifests {sorted(before)}; the logs are in {stack.folder}"
        ) from None
    return time.monotonic() - began


def _settle(stack: NorthwindStack) -> float:
    """Wait until the lake has everything, and return the seconds."""
    began = time.monotonic()
    pipeline = stack.table.pipeline
    bound = stack.resources
    heartbeat = table_progress.barrier(
        pipeline.source_postgres(bound["postgres"]), bound["kafka"], bound["connect"], pipeline, SETTLE_SECONDS
    )

    def reached() -> bool:
        state = topic_state.current(stack.resources["kafka"], stack.table, stack.store)
        found = table_progress.lake_watermark(stack.store, stack.table, state)
        return found is not None and found.lsn >= heartbeat.lsn

    try:
        Retrying(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(SETTLE_SECONDS), wait=wait_fixed(1))(
            reached
        )
    except RetryError:
        commit = timeline.last_commit(stack.store, stack.table.lake_prefix)
        raise AssertionError(
            f"the lake did not reach LSN {heartbeat.lsn} within {SETTLE_SECONDS:.0f} s after the last kill; its newest "
            f"commit is {commit}; the logs are in {stack.folder}"
        ) from None
    return time.monotonic() - began
