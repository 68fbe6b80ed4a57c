"""Writes results as the programs do."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.goals import SIZES
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder, Result


def written(folder: Path, figures: list[Figure], program: str = "small_batch", size: int = 3) -> Result:
    """Return the result of a program with these figures, written into the folder; its arguments are all `size`."""
    parser = argparse.ArgumentParser()
    for argument in SIZES.get(program, ("rounds",)):
        parser.add_argument(f"--{argument}", type=int, default=size)
    recorder = Recorder(parser)
    options = parser.parse_args(["--results", str(folder)])
    return recorder.write(options, program, figures)
