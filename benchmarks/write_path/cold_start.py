"""Measure a cold process, from its start to the commit of Northwind's 829 events, and plain Spark with each peer.

Runs the demo on a separate stack. Then, `--rounds` times and in turn, it starts a process for each system that reads
the same raw objects and writes a new table (peers/cold_process.py).

    python -m benchmarks.write_path.cold_start --rounds 3
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measures.demo_stack import running_demo
from benchmarks.measures.processes import ROOT
from benchmarks.measures.usage import Usage
from benchmarks.peers.engines import fetch_jars
from benchmarks.peers.table_formats import PEERS
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.profile import resolved

EVENTS = 829
WHAT = "829 events, cold"


def snapshot() -> tuple[int, list[str]]:
    """Return how many manifests have the demo's 829 first events, and the URIs of their objects."""
    table, at = load("northwind").tables[0], location(resolved()["store"])
    records, objects = 0, list[str]()
    for manifest in Chain(at.store(), table.pipeline.name, table.topic).since(0):
        records += manifest.records
        objects += [f"s3a://{at.bucket}/{item.key}" for item in manifest.objects]
        if records == EVENTS:
            return manifest.number, objects
    raise RuntimeError(f"Cannot measure a cold process: no manifests end after {EVENTS} of Northwind's events.")


def run(system: str, number: int, manifests: int, objects: Sequence[str]) -> Usage:
    """Run one process, and return its cost up to the commit."""
    bucket = objects[0].split("/")[2]
    place = f"cold_{number}" if system == OURS else f"s3a://{bucket}/peers/{system}-{number}"
    started = time.time()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.cold_process", json.dumps([system, place, manifests, objects])],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Cannot measure {system}: its process ended with {done.returncode}.\n{done.stderr[-4000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Usage(found["committed_at"] - started, found["cpu_seconds"])


def main() -> int:
    """Run it, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    fetch_jars()
    costs: Mapping[str, list[Usage]] = {system: [] for system in (OURS, *PEERS)}
    with running_demo(options.home):
        manifests, objects = snapshot()
        # The first process of ours writes the class archive of Spark, and reads files for the first time.
        for number in range(options.rounds + 1):
            for system, found in costs.items():
                used = run(system, number, manifests, objects)
                if number > 0:
                    found.append(used)
    table = Table("system", "s to the commit", "CPU s", title=f"{WHAT}, median of {options.rounds}")
    figures = []
    for system, found in costs.items():
        name = PEERS[system].system if system in PEERS else system
        for unit, value in (
            ("s", statistics.median(u.seconds for u in found)),
            ("CPU s", statistics.median(u.cpu_seconds for u in found)),
        ):
            figures.append(Figure(what=WHAT, unit=unit, system=name, value=round(value, 2)))
        table.add_row(name, *(f"{figure.value:.1f}" for figure in figures[-2:]))
    Console(width=100).print(table)
    recorder.write(options, "cold_start", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
