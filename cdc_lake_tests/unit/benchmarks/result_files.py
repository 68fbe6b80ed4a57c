"""Writes results as the programs do."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.goals import SIZES
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder, Result


def written(folder: Path, figures: list[Figure], program: str = "small_batch", size: int = 3) -> Result:
    """Return the result of a program with these figures, written into the folder; `size` is its argument."""
    argument, _ = SIZES.get(program, ("rounds", 0))
    parser = argparse.ArgumentParser()
    parser.add_argument(f"--{argument}", type=int)
    recorder = Recorder(parser)
    options = parser.parse_args([f"--{argument}", str(size), "--results", str(folder)])
    return recorder.write(options, program, figures)
