"""Measure what it costs to change 1% of a large table: copy-on-write and merge-on-read, keys everywhere and new keys.

Starts a separate stack (S3) and Spark as the local profile does. For each table type it applies a first load of
`--rows` rows, and then `--batches` batches of 1% of them: of keys that are spread over the whole table, and of the
newest keys. It prints wall and CPU seconds (this process, Spark's JVM and its Python workers), the files that a batch
wrote, and how many bytes it wrote for each byte of its rows. A warm-up batch is not counted.

    python -m benchmarks.upsert_cost --rows 1000000
    python -m benchmarks.upsert_cost --types cow --option hoodie.index.type=BLOOM --rows-per-file 250000
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import psutil
from rich.console import Console
from rich.table import Table

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.hudi.writer import HudiTable, TableType
from cdc_lake_tests.integration.jobs.engines import Engines, running_engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

COLUMNS = (
    Column(name="id", type="bigint", nullable=False),
    Column(name="note", type="text"),
    Column(name="qty", type="integer"),
    Column(name="amount", type="text"),
)
MANIFEST = 100_000
"""Records of a manifest of the first load."""


@dataclass(frozen=True)
class Cost:
    """What one batch cost."""

    batch: str
    seconds: float
    cpu_seconds: float
    files: int
    megabytes: float


def event(number: int, lsn: int, snapshot: bool) -> Mapping[str, object]:
    """Return the change event of a row, as Debezium's unwrapped record."""
    return {
        "id": number,
        "note": None if number % 7 == 0 else f"note {number}" + " and more" * (number % 20),
        "qty": (number * 3 + lsn) % 1000,
        "amount": f"{number % 1000000 / 100:.2f}",
        "__op": "r" if snapshot else "u",
        "__db": "devdb",
        "__schema": "public",
        "__table": "orders",
        "__lsn": lsn,
        "__txId": lsn,
        "__snapshot": "true" if snapshot else "false",
        "__source_ts_ms": 1_700_000_000_000 + lsn,
        "__deleted": "false",
    }


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of everything that it has started."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


class Bench:
    """One table of `rows` rows."""

    def __init__(self, engines: Engines, table_type: TableType, rows: int) -> None:
        self.table = LakeTable(engines, f"bench-{table_type}", COLUMNS, ("id",), table_type, records_per_object=50_000)
        self.spec = replace(self.table.spec, dead_letter_limit=0)
        self._rows = rows
        self._lsn = 1000

    def load(self) -> None:
        """Land the first load."""
        for first in range(0, self._rows, MANIFEST):
            self.table.deliver([event(n, 1, True) for n in range(first, min(first + MANIFEST, self._rows))])

    def change(self, numbers: Iterator[int] | range) -> None:
        """Land updates of these rows."""
        self._lsn += 1
        self.table.deliver([event(number, self._lsn, False) for number in numbers])

    def apply(self, batch: str) -> Cost:
        """Apply what is landed."""
        started, used = time.monotonic(), cpu_seconds()
        commit = self.table.upsert(self.spec).commit
        if commit is None:
            raise RuntimeError(f"batch {batch} committed nothing")
        seconds = time.monotonic() - started
        return Cost(batch, seconds, cpu_seconds() - used, commit.files_written, commit.bytes_written / 2**20)


def measure(engines: Engines, table_type: TableType, rows: int, batches: int) -> Iterator[Cost]:
    """Yield the cost of the first load and of each batch."""
    bench, share = Bench(engines, table_type, rows), rows // 100
    bench.load()
    yield bench.apply("first load")
    bench.change(range(0, rows, 100 * 10))
    bench.apply("warm-up")
    for number in range(batches):
        bench.change(range(number, rows, 100))
        yield bench.apply("1% everywhere")
        bench.change(range(rows - share, rows))
        yield bench.apply("1% newest")


def report(found: Mapping[str, Sequence[Cost]]) -> Table:
    """Return the medians as a table."""
    shown = Table("table", "batch", "wall s", "CPU s", "files", "MB written")
    for name, costs in found.items():
        for batch in dict.fromkeys(cost.batch for cost in costs):
            same = [cost for cost in costs if cost.batch == batch]

            def median(read: Callable[[Cost], float], same: Sequence[Cost] = same) -> float:
                return statistics.median(map(read, same))

            shown.add_row(
                name,
                batch,
                f"{median(lambda cost: cost.seconds):.1f}",
                f"{median(lambda cost: cost.cpu_seconds):.1f}",
                f"{median(lambda cost: cost.files):.0f}",
                f"{median(lambda cost: cost.megabytes):.1f}",
            )
    return shown


def main() -> int:
    """Run it, and print the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--types", nargs="+", choices=get_args(TableType), default=list(get_args(TableType)))
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="another option of Hudi's")
    parser.add_argument("--rows-per-file", type=int, default=upsert.ROWS_PER_FILE)
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    options = parser.parse_args()
    upsert.ROWS_PER_FILE = options.rows_per_file
    usual, changed = HudiTable.options, dict(option.split("=", 1) for option in options.option)
    HudiTable.options = lambda table: usual(table) | changed  # type: ignore[method-assign]
    found: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        home, scratch = Path(folder) / "home", Path(folder) / "spark"
        scratch.mkdir()
        with running_engines(home, scratch, ("s3",)) as (engines, _):
            for table_type in options.types:
                found[table_type] = list(measure(engines, table_type, options.rows, options.batches))
    Console().print(report(found))
    if options.json:
        costs = {name: [asdict(cost) for cost in each] for name, each in found.items()}
        options.json.write_text(json.dumps({"rows": options.rows, "costs": costs}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
