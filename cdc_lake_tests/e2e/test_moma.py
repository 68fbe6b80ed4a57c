"""`cdc-lake demo moma` beside Northwind: counts, changes, equal tables; the commands of its page, and its notebook."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from cdc_lake_tests.helpers.command_line import ROOT, CommandLine
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only


def execute(cli: CommandLine, path: Path) -> None:
    """Execute a notebook on the stack; raises CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute(env=cli.environment)


@full_only
@pytest.mark.timeout(1800)
def test_the_demo_of_moma_is_complete_and_its_page_works(cli: CommandLine) -> None:
    done = cli.run("cdc-lake", "demo", "moma", "--json", ok=False, timeout=1500)
    assert done.stdout, done.stderr
    summary = json.loads(done.stdout)
    stages = ("source", "topic", "raw", "cow", "mor")
    assert {name: found["stages"] for name, found in summary["tables"].items()} == {
        "artists": dict.fromkeys(stages, 1000),
        "artworks": dict.fromkeys(stages, 2000),
    }
    assert summary["datasets"]["collection"] == 2000
    assert {name: story["ok"] for name, story in summary["stories"].items()} == {"redated": True, "changed": True}, (
        summary["stories"]
    )
    redated = summary["stories"]["redated"]
    assert redated["year_in_ro_before_and_after_compaction"] == [1959, 1960]
    assert redated["year_in_rt_before_and_after_compaction"] == [1960, 1960]
    assert redated["file_of_rt_before_and_after_compaction"] == ["log", "parquet"]
    assert {name: (found["clean"], found["compared"]) for name, found in summary["verify"].items()} == {
        "cow.artists": (True, 999),
        "mor.artists": (True, 999),
        "cow.artworks": (True, 2000),
        "mor.artworks": (True, 2000),
    }
    assert summary["checks"]["failed"] == 0, summary["checks"]["faults"]
    assert Path(summary["dashboard"]).is_file()
    assert done.returncode == 0
    _, output = cli.run_page("reference/moma.md")
    assert "441,Belkis Ayón Manso,American" in output, "the tombstone has the last values"
    newest_file = redated["file_names_in_rt"]["after_compaction"]
    assert output.count(newest_file) == 2, "both names of the table show the compaction's Parquet file"
    execute(cli, ROOT / "docs/notebooks/moma_time_travel.ipynb")
    # The sensors of a later `cdc-lake dev` on this stack have nothing to do.
    cli.run("cdc-lake", "reset", "moma", "--yes")
