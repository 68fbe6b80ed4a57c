"""A separate stack without the registry, for programs that run a pipeline of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdc_lake.profile import spark
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.components import needed_components


@contextmanager
def running_pipeline_stack() -> Iterator[tuple[Path, Path]]:
    """Run the stack; yield its state folder and a folder for the pipeline's YAML.

    Sets CDC_LAKE_HOME to the state folder. Stops Spark before the stack.
    """
    with (
        scratch_home() as home,
        tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder,
        running_stack(home, needed_components(registry=False)),
    ):
        os.environ["CDC_LAKE_HOME"] = str(home)
        try:
            yield home, Path(folder)
        finally:
            spark().stop()
