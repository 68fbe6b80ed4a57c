"""Writes results as the programs do."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder, Result


def written(folder: Path, figures: list[Figure], program: str = "small_batch") -> Result:
    """Return the result of a program with these figures, written into the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int)
    recorder = Recorder(parser)
    return recorder.write(parser.parse_args(["--rounds", "3", "--results", str(folder)]), program, figures)
