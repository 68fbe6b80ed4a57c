"""`cdc-lake demo moma` beside Northwind: counts, changes, equal tables; the commands of its page, and its notebook."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from cdc_lake_tests.e2e.demo_summary import rows_by_table, run_demo
from cdc_lake_tests.helpers.command_line import ROOT, CommandLine


def execute(cli: CommandLine, path: Path) -> None:
    """Execute a notebook on the stack; raises CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute(env=cli.environment)


@pytest.mark.timeout(1800)
def test_the_demo_of_moma_is_complete_and_its_page_works(cli: CommandLine) -> None:
    summary = run_demo(cli, "moma")
    rows = rows_by_table(summary, "source", "topic", "raw", "cow", "mor")
    assert rows == {"artists": 1000, "artworks": 2000}
    assert summary["datasets"]["collection"] == 2000
    assert list(summary["stories"]) == ["redated", "changed"]
    redated = summary["stories"]["redated"]
    assert redated["year_in_ro_before_and_after_compaction"] == [1959, 1960]
    assert redated["year_in_rt_before_and_after_compaction"] == [1960, 1960]
    assert redated["file_of_rt_before_and_after_compaction"] == ["log", "parquet"]
    assert {name: found["compared"] for name, found in summary["verify"].items()} == {
        "cow.artists": 999,
        "mor.artists": 999,
        "cow.artworks": 2000,
        "mor.artworks": 2000,
    }
    assert Path(summary["dashboard"]).is_file()
    _, output = cli.run_page("reference/moma.md")
    assert "441,Belkis Ayón Manso,American" in output, "the tombstone has the last values"
    newest_file = redated["file_names_in_rt"]["after_compaction"]
    assert output.count(newest_file) == 2, "both names of the table show the compaction's Parquet file"
    execute(cli, ROOT / "docs/notebooks/moma_time_travel.ipynb")
    # The sensors of a later `cdc-lake dev` on this stack have nothing to do.
    cli.run("cdc-lake", "reset", "moma", "--yes")
