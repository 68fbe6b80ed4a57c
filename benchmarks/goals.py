"""The goals: for each, which program measures it, and the bound that its figure is compared with.

A bound is absolute, or relative to the same figure of another system in the same run. Seconds depend on the machine.
To compare two versions of cdc-lake, compare the ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from benchmarks.report.figures import OURS, Figure, value_of

PLAIN_HUDI, ICEBERG, DELTA, DLT, HOODIE_STREAMER = "plain Hudi", "Iceberg", "Delta", "dlt", "HoodieStreamer"
ROW_TRIGGER, STORE = "row trigger", "the store alone"
GROWN = f"{OURS}, reference tables x 100"
SIZES: Mapping[str, Mapping[str, float]] = {
    "upsert_cost": {"rows": 1_000_000, "batches": 10},
    "landing_rate": {"records": 1_000_000},
    "batch_cost": {"manifests": 10_000, "commits": 2_500},
    "table_growth": {"rows": 10_000_000},
    "freshness_continuous": {"minutes": 10},
    "freshness_triggered": {"minutes": 10},
    "sustained": {"minutes": 10},
}
"""By program: the arguments that set its size, and the smallest values with which its goals are evaluated."""


@dataclass(frozen=True)
class Goal:
    """One line of the table of goals.

    `measure` is the goal's name in the table. Its figure is the one of `system` that `program` measures as `what`, in
    `unit`. The figure has to be at most `bound`, or at most `ratio` times the same figure of `peer`, or, if both are
    set, at most the larger of the two. With `at_least`, it has to be at least that value, or the smaller of the two. A
    goal that is `reported` is compared but not evaluated. `limit` is the limiting factor, which is reported while the
    goal is not met.
    """

    number: int
    measure: str
    program: str
    what: str
    unit: str
    bound: float | None = None
    peer: str | None = None
    ratio: float = 1.0
    at_least: bool = False
    reported: bool = False
    system: str = OURS
    limit: str = ""


class GoalResult(BaseModel):
    """A goal with its figure.

    `met` is None if the goal is only reported, if the figure is missing, if there is nothing to compare it with, or if
    the program ran with a smaller argument than in SIZES. `limit` is the limiting factor of a goal that is not met, or
    the argument that the evaluation needs; otherwise it is empty.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    measure: str
    unit: str
    measured: float | None
    bound: float | None
    against: str
    """The ratio, the peer and the peer's figure, such as `1.2 x Iceberg (3.4)`; empty if the bound is not relative."""
    share: float | None
    """The figure as a share of the bound; inverted for a figure that has to be at least the bound."""
    met: bool | None
    limit: str
    reported: bool = False
    """Whether the goal is only reported."""


GOALS = (
    Goal(1, "commit to visible, continuous, p50", "freshness_continuous", "commit to visible", "s, p50", bound=3,
         limit="CPU time: source, stack, queries and Spark share two cores (CPU time by component)"),
    Goal(1, "commit to visible, continuous, p95", "freshness_continuous", "commit to visible", "s, p95", bound=6,
         limit="as for p50"),
    Goal(1, "continuous, last third to first", "freshness_continuous", "commit to visible, growth", "x", bound=1.25),
    Goal(2, "commit to visible, triggered, p50", "freshness_triggered", "commit to visible", "s, p50", bound=15,
         limit="CPU time: runs, daemon, stack and queries share two cores, and a change waits for the run before"),
    Goal(3, "a batch of 1%, merge-on-read", "upsert_cost", "1% everywhere, merge-on-read", "CPU s", bound=15),
    Goal(3, "a batch of 1%, copy-on-write", "upsert_cost", "1% everywhere, copy-on-write", "CPU s", bound=40),
    Goal(3, "all batches and services, merge-on-read, to plain Hudi", "upsert_cost", "batches, merge-on-read",
         "CPU s", peer=PLAIN_HUDI, ratio=1.2),
    Goal(3, "all batches and services, merge-on-read, to Iceberg", "upsert_cost", "batches, merge-on-read",
         "CPU s", peer=ICEBERG, reported=True),
    Goal(3, "all batches and services, copy-on-write, to Delta", "upsert_cost", "batches, copy-on-write",
         "CPU s", peer=DELTA),
    Goal(3, "files rewritten by recent keys", "upsert_cost", "recent keys, copy-on-write",
         "files rewritten per file touched", bound=1),
    Goal(4, "scan, copy-on-write, to Iceberg", "upsert_cost", "scan, copy-on-write", "CPU s",
         peer=ICEBERG, ratio=1.2, limit="Hudi's reader, which plain Hudi uses too"),
    Goal(4, "scan, merge-on-read, to Iceberg", "upsert_cost", "scan, merge-on-read", "CPU s",
         peer=ICEBERG, ratio=1.2, limit="as for copy-on-write"),
    Goal(5, "first load, to Delta", "upsert_cost", "first load, copy-on-write", "CPU s", peer=DELTA, ratio=1.5,
         limit="parsing and checking each record, and two reads of the cached batch before it is written"),
    Goal(6, "829 events, cold, to plain Spark with Hudi", "cold_start", "829 events, cold", "s",
         peer=PLAIN_HUDI),
    Goal(6, "829 events, cold, to plain Spark with Iceberg", "cold_start", "829 events, cold", "s", peer=ICEBERG,
         reported=True),
    Goal(6, "50 events, warm: land and apply", "small_batch", "50 events, warm", "s", bound=1.5,
         limit="the upsert takes most of it"),
    Goal(7, "landing of 1 KB records", "landing_rate", "landing", "records/s",
         bound=80_000, peer=STORE, ratio=0.8, at_least=True,
         limit="CPU time: Python workers and the S3 server share two cores"),
    Goal(8, "backlog from Kafka to the lake", "landing_rate", "backlog to the lake", "changes/s",
         bound=6_000, at_least=True, limit="the upsert's CPU time: 0.1 s for 1,000 records of 1 KB"),
    Goal(8, "sustained, through the outbox", "sustained", "sustained, outbox", "changes/s",
         reported=True),
    Goal(8, "sustained, of a captured table", "sustained", "sustained, log", "changes/s", bound=1_000,
         at_least=True),
    Goal(8, "lag at the end, of a captured table", "sustained", "lag at the end, log", "s", reported=True),
    Goal(9, "an order updated", "triggers", "an order updated", "ms over no trigger", peer=ROW_TRIGGER,
         limit="the fixed cost of the statement's triggers, which a row trigger does not have"),
    Goal(9, "an order with three lines", "triggers", "an order with three lines", "ms over no trigger",
         peer=ROW_TRIGGER),
    Goal(9, "500 orders in one statement", "triggers", "500 orders in one statement", "ms over no trigger",
         peer=ROW_TRIGGER, ratio=1 / 3,
         limit="building, compressing and logging 500 documents, which a row trigger does too"),
    Goal(9, "500 orders, reference tables x 100", "triggers", "500 orders in one statement", "ms over no trigger",
         system=GROWN, peer=OURS, ratio=1.2),
    Goal(10, "whole graph, nothing new", "nothing_new", "whole graph", "s", bound=10,
         limit="loading the definitions, and the queries of the dashboard"),
    Goal(10, "definitions, over `import dagster`", "start_times", "loading the definitions",
         "s over import dagster", bound=1.0,
         limit="the modules of assets, checks and jobs"),
    Goal(10, "`cdc-lake query`", "start_times", "cdc-lake query", "s", bound=1.0,
         limit="the process imports Dagster before it sends the query"),
    Goal(11, "a batch after many manifests, to few", "batch_cost",
         "a batch, by manifests", "x", bound=1.2,
         limit="the local S3 server reads the whole folder for each listing; the number of requests is constant"),
    Goal(11, "a batch after many commits, to few", "batch_cost", "a batch, by commits", "x", bound=1.2,
         limit="all commits of `history` stay in the timeline, and each of its listings has three files for a commit"),
    Goal(11, "a batch in a large table, to a small one", "table_growth",
         "a batch, by rows", "x", bound=2),
    Goal(11, "six tables, the whole pipeline", "several_tables", "six tables, the longest run", "s", bound=45),
    Goal(11, "a poll of 1,000 rows, largest table to smallest", "poll_cost", "a poll, by table", "x", bound=1.5),
    Goal(11, "a poll of ten times as many rows", "poll_cost", "a poll, by changed rows", "x", bound=10),
    Goal(12, "memory of the whole stack, continuous", "freshness_continuous", "memory, whole stack", "GB", bound=6),
    Goal(12, "growth of memory in the second half of the window", "freshness_continuous", "memory, growth", "GB/h",
         reported=True),
)  # fmt: skip


def evaluate(program: str, figures: Iterable[Figure], arguments: Mapping[str, object]) -> tuple[GoalResult, ...]:
    """Compare the figures of a program with its goals; `arguments` are those of its run."""
    known = tuple(figures)
    return tuple(_evaluated(goal, known, arguments) for goal in GOALS if goal.program == program)


def unmeasured(measured: Iterable[tuple[int, str]]) -> tuple[GoalResult, ...]:
    """Return all goals except these, which are given by number and measure, without figures."""
    known = set(measured)
    return tuple(_evaluated(goal, (), {}) for goal in GOALS if (goal.number, goal.measure) not in known)


def _evaluated(goal: Goal, figures: tuple[Figure, ...], arguments: Mapping[str, object]) -> GoalResult:
    measured = value_of(figures, goal.what, goal.unit, goal.system)
    theirs = None if goal.peer is None else value_of(figures, goal.what, goal.unit, goal.peer)
    relative = None if theirs is None else goal.ratio * theirs
    bounds = [bound for bound in (goal.bound, relative) if bound is not None]
    bound = None if not bounds else min(bounds) if goal.at_least else max(bounds)
    share = None
    if measured and bound:
        share = bound / measured if goal.at_least else measured / bound
    met, limit = None, ""
    sizes = SIZES.get(goal.program, {})
    missed = [f"--{name} {least:,.0f}" for name, least in sizes.items() if _largest(arguments.get(name)) < least]
    if measured is not None and missed and not goal.reported:
        limit = f"evaluated only with {' '.join(missed)} or more"
    elif measured is not None and bound is not None and not goal.reported:
        met = measured >= bound if goal.at_least else measured <= bound
        limit = "" if met else goal.limit
    is_relative = theirs is not None and bound == relative
    against = f"{goal.ratio:.2g} x {goal.peer} ({theirs:.3g})" if is_relative else ""
    return GoalResult(
        number=goal.number,
        measure=goal.measure,
        unit=goal.unit,
        measured=measured,
        bound=bound,
        against=against,
        share=share,
        met=met,
        limit=limit,
        reported=goal.reported,
    )


def _largest(argument: object) -> float:
    """Return the value of a program's argument, or the largest one of several."""
    values = argument if isinstance(argument, Sequence) else (argument,)
    return max((float(value) for value in values if isinstance(value, int | float)), default=0.0)
