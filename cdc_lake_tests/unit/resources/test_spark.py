"""Starting Spark ahead: what fails there is told to whoever asks for the session."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from resources.errors import ResourceError
from resources.object_store import ObjectStore
from resources.spark import LocalSpark


def test_a_start_ahead_that_fails_is_told_where_the_session_is_asked_for(tmp_path: Path) -> None:
    spark = LocalSpark(
        java_home="/none", jars=str(tmp_path), properties=[], store=ObjectStore(bucket="none"), hint="Run setup."
    )
    spark.warm()
    for thread in threading.enumerate():
        if thread.name == "spark-warming":
            thread.join()
    with pytest.raises(ResourceError, match="there are no jars for Spark"):
        spark.session()
    spark.stop()
