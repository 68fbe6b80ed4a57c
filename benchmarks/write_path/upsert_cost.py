"""Measure what it costs to load a large table, to change 1% of it, and to read it, also with Iceberg, Delta and Hudi.

Starts a separate stack (S3) and Spark as the local profile does. All systems read the same raw objects in the same
session. Each gets a first load of `--rows` rows, then `--batches` pairs of batches of 1% of them: updates of keys that
are spread over the whole table, and of the newest keys. Then its table services run, and the table is scanned. The
program prints wall and CPU seconds (this process, Spark's JVM, its Python workers, and the S3 server), and for our
tables the files and bytes that a batch wrote. It fails if the systems' rows differ. Before that, each system fills a
small table and applies one batch as a warm-up, which is not measured. Peers are the systems other than cdc-lake.

    python -m benchmarks.write_path.upsert_cost --rows 1000000
    python -m benchmarks.write_path.upsert_cost --systems cow --option hoodie.index.type=BLOOM --rows-per-file 250000
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from benchmarks.measures.row_events import EVENTS, RawRows
from benchmarks.measures.usage import Usage, measured
from benchmarks.peers.engines import FOLDER, running_engines_with_peers
from benchmarks.peers.our_table import OurTable
from benchmarks.peers.table_formats import DeltaTable, IcebergTable, PeerTable, PlainHudiTable, TableType
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake_tests.integration.jobs.engines import Engines

KINDS: Mapping[TableType, str] = {"cow": "copy-on-write", "mor": "merge-on-read"}
PEERS: Mapping[str, tuple[type[PeerTable], TableType]] = {
    "hudi": (PlainHudiTable, "mor"),
    "hudi-cow": (PlainHudiTable, "cow"),
    "iceberg": (IcebergTable, "mor"),
    "iceberg-cow": (IcebergTable, "cow"),
    "delta": (DeltaTable, "cow"),
    "delta-mor": (DeltaTable, "mor"),
}
DEFAULT = ("cow", "mor", "hudi", "iceberg", "delta")
SCANS = 3
WARM_UP_ROWS = 1_000
UNIFORM, RECENT = "1% everywhere", "1% newest"


@dataclass
class Costs:
    """What one system's steps cost, and what our table's batches wrote."""

    load: Usage | None = None
    batches: list[tuple[str, Usage]] = field(default_factory=list)
    services: Usage | None = None
    scans: list[Usage] = field(default_factory=list)
    files: list[tuple[str, float, float]] = field(default_factory=list)
    """For each of our batches: its kind, the number of files it wrote, and their size in MB."""
    touched: list[int] = field(default_factory=list)
    """The number of files that had the newest keys, before each batch of them."""


class Measurement:
    """The tables of all systems, and what was measured."""

    def __init__(self, engines: Engines, systems: Sequence[str], rows: int) -> None:
        self._raw = RawRows(engines, rows)
        self.tables: dict[str, OurTable | PeerTable] = {}
        for name in systems:
            if name in KINDS:
                self.tables[name] = OurTable(engines.spark, self._raw.upsert_spec(name))  # type: ignore[arg-type]
            else:
                kind, table_type = PEERS[name]
                table_name = f"{name.replace('-', '_')}_{rows}"
                self.tables[name] = kind(engines.spark, EVENTS, FOLDER, table_name, table_type)
        self.costs = {name: Costs() for name in self.tables}

    def run(self, batches: int) -> None:
        """Load, change, maintain and scan; each batch is applied by each system before the next one."""
        objects = self._raw.load()
        for name, table in self.tables.items():
            _, self.costs[name].load = measured(lambda: table.load(objects))  # noqa: B023 - called in this round
            _print_progress(f"{name}: first load in {self.costs[name].load.seconds:.1f} s")  # type: ignore[union-attr]
        warm_up = self._raw.change(range(0, self._raw.rows, 100 * 10))
        for table in self.tables.values():
            table.apply(warm_up)
        for number in range(batches):
            self._batch(UNIFORM, range(number, self._raw.rows, 100))
            self._batch(RECENT, self._raw.newest())
            _print_progress(f"pair {number + 1} of {batches}")
        for name, table in self.tables.items():
            _, self.costs[name].services = measured(table.maintain)
            for _ in range(SCANS):
                _, used = measured(lambda: table.rows().agg(*self._raw.totals()).collect())  # noqa: B023
                self.costs[name].scans.append(used)
        self._compare()

    def _batch(self, kind: str, numbers: range) -> None:
        objects = self._raw.change(numbers)
        for name, table in self.tables.items():
            if kind == RECENT and isinstance(table, OurTable):
                self.costs[name].touched.append(table.files_with(f"id >= {numbers.start}"))
            commit, used = measured(lambda: table.apply(objects))  # noqa: B023 - called in this round
            self.costs[name].batches.append((kind, used))
            if commit is not None:
                self.costs[name].files.append((kind, commit.files_written, commit.bytes_written / 2**20))

    def _compare(self) -> None:
        """Raise RuntimeError if two tables have different rows."""
        found = {name: table.rows().agg(*self._raw.totals()).collect()[0] for name, table in self.tables.items()}
        if len(set(found.values())) > 1:
            raise RuntimeError(f"Cannot compare the systems: their tables have different rows: {found}.")


def measure(engines: Engines, systems: Sequence[str], rows: int, batches: int) -> Mapping[str, Costs]:
    """Return the costs of all systems. Each first fills a small table, so that no figure includes the JVM's start."""
    Measurement(engines, systems, WARM_UP_ROWS).run(1)
    found = Measurement(engines, systems, rows)
    found.run(batches)
    return found.costs


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def system_of(name: str) -> str:
    """Return the system's name in the results."""
    return OURS if name in KINDS else PEERS[name][0].system


def type_of(name: str) -> TableType:
    """Return the table type."""
    return name if name in KINDS else PEERS[name][1]  # type: ignore[return-value]


def figures(costs: Mapping[str, Costs]) -> Iterator[Figure]:
    """Yield the figures of all systems. If a peer was measured with one table type, its figures count for both."""
    for table_type, kind in KINDS.items():
        for name, cost in costs.items():
            same = [other for other in costs if system_of(other) == system_of(name)]
            if type_of(name) == table_type or (name not in KINDS and len(same) == 1):
                yield from _figures(cost, kind, system_of(name))


def _figures(cost: Costs, kind: str, system: str) -> Iterator[Figure]:
    if cost.load is None or cost.services is None:
        raise ValueError(f"{system} was not measured to its end")
    steps = {
        "first load": [cost.load],
        UNIFORM: [used for what, used in cost.batches if what == UNIFORM],
        RECENT: [used for what, used in cost.batches if what == RECENT],
        "table services": [cost.services],
        "scan": cost.scans,
    }
    for what, used in steps.items():
        for unit, values in (("s", [u.seconds for u in used]), ("CPU s", [u.cpu_seconds for u in used])):
            yield Figure(what=f"{what}, {kind}", unit=unit, system=system, value=round(statistics.median(values), 2))
    total = sum((used for _, used in cost.batches), Usage(0, 0)) + cost.services
    yield Figure(what=f"batches, {kind}", unit="CPU s", system=system, value=round(total.cpu_seconds, 2))
    if cost.files:
        for what in (UNIFORM, RECENT):
            for unit, column in (("files", 1), ("MB", 2)):
                values = [float(each[column]) for each in cost.files if each[0] == what]
                yield Figure(what=f"{what}, {kind}", unit=unit, value=round(statistics.median(values), 2))
        recent = [files for what, files, _ in cost.files if what == RECENT]
        ratio = max(files / touched for files, touched in zip(recent, cost.touched, strict=True))
        yield Figure(what=f"recent keys, {kind}", unit="files rewritten per file touched", value=round(ratio, 2))


def report(costs: Mapping[str, Costs]) -> Table:
    """Return the medians as a table."""
    shown = Table("table", "step", "wall s", "CPU s", "files", "MB written")
    for name, cost in costs.items():
        found = {(f.what.rpartition(",")[0], f.unit): f.value for f in _figures(cost, KINDS[type_of(name)], name)}
        for what in ("first load", UNIFORM, RECENT, "table services", "scan"):
            extra = [found.get((what, unit)) for unit in ("files", "MB")]
            numbers = [f"{found[what, 's']:.1f}", f"{found[what, 'CPU s']:.1f}"]
            shown.add_row(name, what, *numbers, *("" if each is None else f"{each:.1f}" for each in extra))
        shown.add_row(name, "all batches and services", "", f"{found['batches', 'CPU s']:.1f}", "", "")
    return shown


def main() -> int:
    """Run it, and print the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=3, help="pairs of batches")
    parser.add_argument("--systems", nargs="+", choices=[*KINDS, *PEERS], default=list(DEFAULT))
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an additional Hudi option for our tables; can be repeated",
    )
    parser.add_argument("--rows-per-file", type=int, default=upsert.ROWS_PER_FILE)
    recorder = Recorder(parser)
    options = parser.parse_args()
    upsert.ROWS_PER_FILE = options.rows_per_file
    usual, changed = HudiTable.options, dict(option.split("=", 1) for option in options.option)
    HudiTable.options = lambda table: usual(table) | changed  # type: ignore[method-assign,assignment]
    with running_engines_with_peers() as engines:
        costs = measure(engines, options.systems, options.rows, options.batches)
    Console(width=110).print(report(costs))
    recorder.write(options, "upsert_cost", list(figures(costs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
