"""The regression gate of CI: ratios on a small size, compared with committed bounds (gate.json).

Each ratio is ours to a peer's in the same process, or in processes that alternate, so that the machine and its load
matter little. CPU seconds are compared; for a landing, seconds by the clock, because a landing that waits for Kafka
needs no CPU time. A bound is twice the ratio when it was committed: the gate finds added work, not noise.

    python -m benchmarks.gate
    python -m benchmarks.gate --write
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.goals import DELTA, PLAIN_HUDI
from benchmarks.measures import benchmark_table
from benchmarks.measures.processes import timed
from benchmarks.peers.engines import running_engines_with_peers
from benchmarks.report.figures import OURS, Figure, value_of
from benchmarks.whole_pipeline.start_times import DAGSTER, DEFINITIONS
from benchmarks.write_path import landing_rate
from benchmarks.write_path.upsert_cost import RECENT, UNIFORM, figures, measure

BOUNDS = Path(__file__).with_name("gate.json")
ROWS, PAIRS, STARTS = 20_000, 2, 3
LANDED, LANDINGS = 100_000, 3
SLACK = 2.0
SYSTEMS = ("cow", "mor", "hudi", "delta")
COMPARED = {
    f"first load, copy-on-write, to {DELTA}": ("first load, copy-on-write", DELTA),
    f"{UNIFORM}, copy-on-write, to {DELTA}": (f"{UNIFORM}, copy-on-write", DELTA),
    f"{RECENT}, copy-on-write, to {DELTA}": (f"{RECENT}, copy-on-write", DELTA),
    f"{UNIFORM}, merge-on-read, to {PLAIN_HUDI}": (f"{UNIFORM}, merge-on-read", PLAIN_HUDI),
    f"{RECENT}, merge-on-read, to {PLAIN_HUDI}": (f"{RECENT}, merge-on-read", PLAIN_HUDI),
    f"scan, copy-on-write, to {DELTA}": ("scan, copy-on-write", DELTA),
}
LOADING = "loading the definitions, to import dagster"
LANDING = f"seconds of landing {LANDED:,} records, to putting the objects"


def ratios() -> dict[str, float]:
    """Measure, and return the ratios by name."""
    starts = [(timed(*DAGSTER), timed(*DEFINITIONS)) for _ in range(STARTS + 1)][1:]
    found = {LOADING: statistics.median(ours.cpu_seconds / theirs.cpu_seconds for theirs, ours in starts)}
    with running_engines_with_peers(("s3", "kafka")) as engines:
        known = list(figures(measure(engines, SYSTEMS, ROWS, PAIRS)))
        table = benchmark_table.on_engines(engines)
        table.note = "x" * landing_rate.NOTE
        rounds = [landing_rate.land(table, LANDED) for _ in range(LANDINGS + 1)][1:]
    found[LANDING] = statistics.median(landed.seconds / stored.seconds for landed, stored, _ in rounds)
    return found | {name: _ratio(known, what, peer) for name, (what, peer) in COMPARED.items()}


def _ratio(known: list[Figure], what: str, peer: str) -> float:
    ours, theirs = (value_of(known, what, "CPU s", system) for system in (OURS, peer))
    if ours is None or theirs is None:
        raise ValueError(f"'{what}' was not measured for both systems")
    return ours / theirs


def exceeded(found: Mapping[str, float], bounds: Mapping[str, float]) -> list[str]:
    """Return one message for each ratio above its bound, and for each that has no bound."""
    return [
        f"{name}: {ratio:.2f}, and the bound is {bounds[name]:.2f}" if name in bounds else f"{name}: there is no bound"
        for name, ratio in found.items()
        if name not in bounds or ratio > bounds[name]
    ]


def main() -> int:
    """Compare, or write the bounds; return 1 if a ratio exceeds its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", action="store_true", help=f"write {SLACK} times the measured ratios to {BOUNDS.name}"
    )
    options = parser.parse_args()
    found = ratios()
    if options.write:
        bounds = {name: round(SLACK * ratio, 2) for name, ratio in found.items()}
        BOUNDS.write_text(json.dumps(bounds, indent=1) + "\n", encoding="utf-8")
    bounds = json.loads(BOUNDS.read_text(encoding="utf-8"))
    table = Table("cdc-lake to a peer, CPU seconds unless the name says seconds", "ratio", "bound")
    for name, ratio in found.items():
        table.add_row(name, f"{ratio:.2f}", f"{bounds.get(name, float('nan')):.2f}")
    console = Console(width=110)
    console.print(table)
    faults = exceeded(found, bounds)
    for fault in faults:
        console.print(
            f"[red]Slower than committed, or without a bound:[/red] {fault}. Find the work that was added, or explain "
            "it and run `python -m benchmarks.gate --write`."
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
