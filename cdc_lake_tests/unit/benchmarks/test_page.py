"""The pages of the results contain every goal, and the charts are drawn."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.report import page
from benchmarks.report.figures import Figure
from cdc_lake.dashboard import load_dashboard
from cdc_lake_tests.unit.benchmarks.result_files import written

FRESH = [
    Figure(what="commit to visible", unit="s, p50", value=4.25),
    Figure(what="commit to visible", unit="s, p95", value=5.5),
    Figure(what="memory, whole stack", unit="GB", value=3.5),
    Figure(what="memory: kafka", unit="GB", value=0.5),
    *(Figure(what="latency", unit="s", size=second, value=3) for second in range(20)),
]
LOAD = [
    Figure(what="first load, copy-on-write", unit="CPU s", value=30, system=system) for system in ("cdc-lake", "Delta")
]


def test_the_pages_have_goals_figures_and_runs(tmp_path: Path) -> None:
    results = [written(tmp_path, FRESH, "freshness_continuous", 10), written(tmp_path, LOAD, "upsert_cost", 1_000_000)]
    html = page.write(results, tmp_path).read_text()
    table = (tmp_path / "README.md").read_text()
    assert re.search(r"\| 1: commit to visible, continuous, p50 \| 4.25 s, p50 \| 3 \| no \|", table)
    assert re.search(r"\| 5: first load, to Delta \| 30 CPU s \| 45 = 1.5 x Delta \(30\) \| yes \|", table)
    assert re.search(r"\| 1: continuous, last third to first \| not measured \| 1.25 \| not evaluated \|", table)
    assert re.search(r"\| 11: six tables, the whole pipeline \| not measured \| 45 \| not evaluated \|", table)
    measured = f"{results[1].measured_at:%Y-%m-%d %H:%M} UTC | {results[1].commit}"
    assert f"| upsert_cost | rows=1000000, batches=1000000 | {measured} |" in table
    for drawn in ("goals", "write_path", "freshness", "memory"):
        assert f'<div class="chart" id="{drawn}">' in html
    assert "No rows to draw" in html  # of the programs that have no result here
    assert "first load, to Delta" in html


def test_every_chart_has_a_query_of_its_own() -> None:
    visuals = load_dashboard(page.SPEC).visuals
    assert len({visual.sql for visual in visuals}) == len(visuals)
