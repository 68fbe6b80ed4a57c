"""Model a continuous pipeline on MSK and EMR Serverless: cores, partitions, requests, dollars, and what limits it.

The model has one equation. A batch of `n` changes takes `fixed + n * cpu / cores` seconds, and contains the changes
that arrived during the batch before it. So at `rate` changes a second a batch takes
`fixed / (1 - rate * cpu / cores)` seconds.

CPU seconds for a change, the fixed seconds of a batch and the rate of one connector are those of the newest results of
`landing_rate`, `small_batch` and `sustained`; a core of EMR Serverless is assumed to be as fast as one of that machine.
A connector may be faster than the rate of `sustained`, which is at most the rate at which that program writes.

    python -m benchmarks.scale_model
    python -m benchmarks.scale_model --check      # compares the model with backlogs on one core and on two cores

Prices are AWS's list prices in us-east-1. Change PRICES for another region.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measures.processes import ROOT
from benchmarks.report import results
from benchmarks.report.figures import OURS, Figure, value_of
from benchmarks.report.results import FOLDER, Recorder, Result

RATES = (10, 1_000, 50_000)
LOAD = 0.7
"""The share of the cores' time that changes may use: above it, a batch takes over three times its fixed seconds."""
WORKER_CORES, WORKER_GB = 4, 16
"""A worker of EMR Serverless: the driver and each executor."""
RECORD_BYTES = 1_000
REQUESTS = 161
"""Requests to the store to land and apply a batch of one table (`batch_cost`), of which a third are puts and lists."""
PUT_SHARE = 1 / 3
BROKERS, BROKER_BYTES = 3, 4_800_000
"""The smallest cluster, and what one kafka.m5.large should receive in a second (AWS's best practices for MSK)."""


@dataclass(frozen=True)
class Prices:
    """Dollars: for an hour of a vCPU, a GB, a broker and a unit of MSK Connect; for 1,000 requests."""

    vcpu: float = 0.052624
    gb: float = 0.0057785
    broker: float = 0.21
    connect_unit: float = 0.11
    puts: float = 0.005
    gets: float = 0.0004


PRICES = Prices()


@dataclass(frozen=True)
class Measured:
    """CPU seconds of a landed and of an applied change, fixed seconds of a batch, changes a second of one connector."""

    land_cpu: float
    apply_cpu: float
    fixed_seconds: float
    connector_rate: float

    @property
    def cpu(self) -> float:
        """CPU seconds of a change from Kafka to the lake."""
        return self.land_cpu + self.apply_cpu


@dataclass(frozen=True)
class Size:
    """The resources that a rate needs; dollars are for a million changes, by component.

    One connector reads the WAL of one pipeline, so that a rate above that of a connector needs several pipelines, each
    with a driver and executors of its own. `executors` are those of all pipelines, `partitions` those of one topic.
    """

    rate: int
    pipelines: int
    executors: int
    partitions: int
    brokers: int
    batch_seconds: float
    requests_per_second: float
    dollars: dict[str, float]

    @property
    def limits(self) -> str:
        """What has to be added first when the rate grows."""
        if self.pipelines > 1:
            return "pipelines, among which the tables are divided: one task of a connector reads the whole WAL"
        if self.executors > 1:
            return "executors, and a partition of the topic for each of their cores"
        return "nothing: a batch takes little more than its fixed seconds"


def size(rate: int, measured: Measured, prices: Prices = PRICES) -> Size:
    """Return the size for a rate in changes a second."""
    pipelines = math.ceil(rate / measured.connector_rate)
    each = rate / pipelines
    executors = math.ceil(max(1, each * measured.cpu / LOAD / WORKER_CORES))
    seconds = batch_seconds(each, executors * WORKER_CORES, measured)
    brokers = max(BROKERS, math.ceil(rate * RECORD_BYTES / BROKER_BYTES))
    requests = pipelines * REQUESTS / seconds
    per_million = 1e6 / rate / 3600
    worker = WORKER_CORES * prices.vcpu + WORKER_GB * prices.gb
    request = (PUT_SHARE * prices.puts + (1 - PUT_SHARE) * prices.gets) / 1000
    return Size(
        rate=rate,
        pipelines=pipelines,
        executors=pipelines * executors,
        partitions=max(1, math.ceil(each * measured.land_cpu / LOAD)),
        brokers=brokers,
        batch_seconds=seconds,
        requests_per_second=requests,
        dollars={
            "EMR Serverless": pipelines * (1 + executors) * worker * per_million,
            "MSK": brokers * prices.broker * per_million,
            "MSK Connect": pipelines * prices.connect_unit * per_million,
            "S3 requests": requests * 3600 * request * per_million,
        },
    )


def batch_seconds(rate: float, cores: int, measured: Measured) -> float:
    """Return the seconds of a batch that contains what arrived during a batch. Raises ValueError above the capacity."""
    used = rate * measured.cpu / cores
    if used >= 1:
        raise ValueError(f"Cannot size a batch: {rate:,.0f} changes/s need {rate * measured.cpu:.1f} of {cores} cores.")
    return measured.fixed_seconds / (1 - used)


def backlog_rate(records: int, cores: int, measured: Measured) -> float:
    """Return how many changes of a backlog are landed and applied in a second, in one batch."""
    return records / (measured.fixed_seconds + records * measured.cpu / cores)


def read(found: Iterable[Result]) -> Measured:
    """Return the measured inputs. Raises LookupError if a program has no result with them."""
    by_program = {result.program: result for result in found}

    def value(program: str, what: str, unit: str) -> float:
        result = by_program.get(program)
        figure = None if result is None else value_of(result.figures, what, unit, OURS)
        if figure is None:
            raise LookupError(
                f"Cannot read '{what}' in {unit}: there is no result of {program} with it. Run `make bench "
                f'ARGS="{program}"`.'
            )
        return figure

    return Measured(
        land_cpu=value("landing_rate", "landing", "CPU ms for 1,000 records") / 1e6,
        apply_cpu=value("landing_rate", "applying", "CPU ms for 1,000 records") / 1e6,
        fixed_seconds=value("small_batch", "50 events, warm", "s"),
        connector_rate=value("sustained", "sustained, log", "changes/s"),
    )


def check(measured: Measured, records: int) -> list[Figure]:
    """Run `landing_rate` on one core and on two; return the model's rates and the measured ones, by cores."""
    figures = []
    for cores in (1, 2):
        with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
            command = [
                "taskset",
                "--cpu-list",
                f"0-{cores - 1}",
                sys.executable,
                "-m",
                "benchmarks.write_path.landing_rate",
            ]
            subprocess.run([*command, "--records", str(records), "--results", folder], cwd=ROOT, check=True)
            [result] = results.read(Path(folder))
        found = value_of(result.figures, "backlog to the lake", "changes/s", OURS)
        if found is None:
            raise LookupError("Cannot check the model: landing_rate wrote no rate of a backlog.")
        modelled = backlog_rate(records, cores, measured)
        for system, value in (("measured", found), ("model", modelled)):
            figures.append(
                Figure(what="backlog, by cores", unit="changes/s", system=system, size=cores, value=round(value))
            )
    return figures


MEASURES: Sequence[tuple[str, str, str, Callable[[Size], float]]] = (
    ("pipelines, with a connector each", "", ",.0f", lambda found: found.pipelines),
    ("executors, 4 vCPU each", "", ",.0f", lambda found: found.executors),
    ("partitions of a topic", "", ",.0f", lambda found: found.partitions),
    ("brokers", "", ",.0f", lambda found: found.brokers),
    ("a batch", "s", ".1f", lambda found: found.batch_seconds),
    ("requests to S3", "requests/s", ",.0f", lambda found: found.requests_per_second),
    ("a million changes, EMR Serverless", "USD", ".2f", lambda found: found.dollars["EMR Serverless"]),
    ("a million changes, MSK", "USD", ".2f", lambda found: found.dollars["MSK"]),
    ("a million changes, MSK Connect", "USD", ".2f", lambda found: found.dollars["MSK Connect"]),
    ("a million changes, S3 requests", "USD", ".2f", lambda found: found.dollars["S3 requests"]),
    ("a million changes", "USD", ".2f", lambda found: sum(found.dollars.values())),
)
"""The rows of the table, and the result's figures: name, unit, format, and value of a size."""


def main() -> int:
    """Print the sizes, and with --check the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the model with measurements on one and two cores")
    parser.add_argument("--records", type=int, default=200_000, help="the backlog of --check")
    recorder = Recorder(parser)
    options = parser.parse_args()
    measured = read(results.read(FOLDER if options.results is None else options.results))
    sizes = [size(rate, measured) for rate in RATES]
    table = Table("", *(f"{each.rate:,} changes/s" for each in sizes))
    figures = []
    for name, unit, form, value in MEASURES:
        table.add_row(f"{name} ({unit})" if unit else name, *(format(value(each), form) for each in sizes))
        figures += [Figure(what=name, unit=unit, size=each.rate, value=round(value(each), 3)) for each in sizes]
    table.add_row("what has to grow first", *(each.limits for each in sizes))
    console = Console(width=120)
    console.print(table)
    if options.check:
        checked = check(measured, options.records)
        for figure in checked:
            console.print(f"{figure.what}, {figure.size:.0f}: {figure.value:,.0f} {figure.unit}, {figure.system}")
        figures += checked
    recorder.write(options, "scale_model", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
