"""A pipeline that runs by its sensors under traffic, while blows fall; then peace, and judgement."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake_tests.faults import writer_actions
from cdc_lake_tests.faults.background_traffic import traffic
from cdc_lake_tests.faults.dagster_dev import DagsterDev
from cdc_lake_tests.faults.fault_environment import FAULTS, Bench
from cdc_lake_tests.faults.kill_plan import Blow
from cdc_lake_tests.faults.lake_lag import LagWatch, percentile
from cdc_lake_tests.faults.process_killer import Chaos
from cdc_lake_tests.order_traffic import Counts

SETTLE_SECONDS = 600.0
REST_SECONDS = 600.0
"""Longer than the backoff of a sensor (pipeline/automation/run_requests.py) and the run that follows."""
Say = Callable[[str], None]


@dataclass
class Figures:
    """What a campaign did."""

    seed: int
    traffic: Counts = field(default_factory=Counts)
    kills: dict[str, int] = field(default_factory=dict)
    repairs: list[float] = field(default_factory=list)
    dagster_starts: int = 0
    lag: Sequence[float] = ()
    blind: int = 0
    """Looks at the lag while something that had to be asked was down."""
    manifests_under_fire: int = 0
    manifests: int = 0
    records: int = 0
    commits_under_fire: int = 0
    settle_seconds: float = 0.0
    checks: int = 0
    verified: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """The figures, one a line."""
        done = self.traffic
        lag = " / ".join(f"{percentile(self.lag, share):.0f}" for share in (0.5, 0.95, 1.0))
        each = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return [
            f"seed {self.seed}",
            f"{done.changes:,} changes in {done.transactions:,} transactions, {done.rate:.0f} changes/s; "
            f"{done.rolled_back} rolled back, {done.refused} refused, {done.lost} cut off, "
            f"{done.ambiguous} commits without an answer, {done.reconnects} reconnects",
            f"{sum(self.kills.values())} kills: {each}",
            f"{len(self.repairs)} times `cdc-lake up`, {max(self.repairs, default=0):.0f} s at most; "
            f"`cdc-lake dev` started {self.dagster_starts} times",
            f"lag of the lake's watermark p50 / p95 / max: {lag} s; "
            f"{len(self.lag)} looks, {self.blind} of them in vain",
            f"{self.manifests_under_fire} batches landed and at least {self.commits_under_fire} commits seen in the "
            f"lake under fire; {self.manifests} batches with {self.records:,} records in the end",
            f"{self.settle_seconds:.0f} s from the last change until all of it was in the lake",
            f"{self.checks} checks green; {self.verified['compared']:,} rows verified: "
            + ", ".join(f"{self.verified[name]} {name}" for name in FAULTS),
        ]


def run(
    bench: Bench,
    seed: int,
    blows: Iterator[Blow],
    enough: Callable[[Counter[str]], bool],
    rate: float,
    say: Say,
    rest_after: int | None = None,
) -> Figures:
    """Run it until `enough` of the kills by target returns true.

    After each `rest_after` kills nothing is hit until the lake has taken a batch: blows that follow so fast that no run
    ever ends would try the beginning of runs only. Traffic goes on meanwhile.
    Raises AssertionError for anything lost, doubled or not repaired.
    """
    began = time.monotonic()

    def tell(text: str) -> None:
        say(f"{time.monotonic() - began:6.1f} s  {text}")

    figures = Figures(seed)
    with bench.writer() as writer:
        writer.do(writer_actions.materialise, *writer_actions.STAGES)
    chain = Chain(bench.store, bench.table.pipeline.name, bench.table.topic)
    before = chain.length()
    tell("the pipeline is made; now by its sensors")
    dagster = DagsterDev(bench.cli, bench.folder / "dev.log")
    try:
        dagster.ensure()
        dagster.wait_ready()
        with Chaos(bench.cli, dagster, tell) as chaos, traffic(bench, rate, seed) as changing:
            with LagWatch(bench) as watch:
                rested = 0
                while not enough(chaos.kills):
                    if rest_after is not None and chaos.kills.total() - rested >= rest_after:
                        rested = chaos.kills.total()
                        tell(f"a rest of {_rest(watch, bench):.0f} s, in which the lake took a batch")
                    chaos.strike(next(blows))
                    assert not chaos.faults, chaos.faults
            chaos.mend()
            figures.traffic = changing.stop()
            figures.kills, figures.repairs, figures.lag = dict(chaos.kills), chaos.repairs, watch.seconds
            figures.blind = watch.blind
            assert not watch.backwards, f"the watermark went back: {watch.backwards}"
            figures.manifests_under_fire = chain.length() - before
            figures.commits_under_fire = max(0, len(watch.checkpoints) - 1)
            # Else nothing was hit in its work, and all that follows would be green anyway.
            assert figures.traffic.changes > 0, "nothing was written under fire"
            assert figures.manifests_under_fire > 0, "nothing was landed under fire"
            assert figures.commits_under_fire > 0, "nothing was applied under fire"
            assert figures.blind < len(figures.lag), "the lag could not be looked at even once"
            tell(f"peace after {sum(figures.kills.values())} kills and {figures.traffic.changes:,} changes")
            figures.settle_seconds = _settle(bench)
            tell(f"all of it is in the lake after {figures.settle_seconds:.0f} s")
    finally:
        dagster.stop()
        figures.dagster_starts = dagster.starts
    with bench.writer() as writer:
        checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert all(checks.values()), f"red: {[name for name, green in checks.items() if not green]}"
    figures.checks = len(checks)
    bench.judge_raw()
    figures.verified = bench.verify()
    assert not bench.dead_letters()
    manifests = list(chain.since(0))
    figures.manifests, figures.records = len(manifests), sum(manifest.records for manifest in manifests)
    tell("judged")
    return figures


def _rest(watch: LagWatch, bench: Bench) -> float:
    """Wait until a commit is seen that was not there before; seconds."""
    began, before = time.monotonic(), watch.checkpoints.copy()
    waiting = Retrying(
        retry=retry_if_result(lambda new: not new), stop=stop_after_delay(REST_SECONDS), wait=wait_fixed(0.5)
    )
    try:
        waiting(lambda: watch.checkpoints - before)
    except RetryError:
        raise AssertionError(
            f"nothing was hit for {REST_SECONDS:.0f} s, and the sensors brought nothing into the lake, whose commits "
            f"end with manifests {sorted(before)}; look at {bench.folder}"
        ) from None
    return time.monotonic() - began


def _settle(bench: Bench) -> float:
    """Wait until the sensors have brought everything into the lake; seconds."""
    began = time.monotonic()
    flow = bench.table.pipeline
    bound = bench.resources
    beat = table_progress.barrier(
        flow.at_source(bound["postgres"]), bound["kafka"], bound["connect"], flow, SETTLE_SECONDS
    )

    def there() -> bool:
        state = topic_state.now(bench.resources["kafka"], bench.table)
        found = table_progress.lake_watermark(bench.store, bench.table, state)
        return found is not None and found.lsn >= beat.lsn

    try:
        Retrying(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(SETTLE_SECONDS), wait=wait_fixed(1))(
            there
        )
    except RetryError:
        commit = timeline.last_commit(bench.store, bench.table.lake_prefix)
        raise AssertionError(
            f"within {SETTLE_SECONDS:.0f} s of peace the sensors did not bring LSN {beat.lsn} into the lake, whose "
            f"newest commit is {commit}; look at {bench.folder}"
        ) from None
    return time.monotonic() - began
