"""The end of a Spark server, on a real socket. Tests of its jobs: integration/resources/test_spark_server.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from resources.object_store import ObjectStore
from resources.spark.job_server.server import JobServer
from resources.spark.local import LocalSpark

_SPARK = LocalSpark(java_home="", jars="", properties=[], store=ObjectStore(bucket="none"))


def test_a_server_ends_after_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with JobServer(tmp_path / "socket", _SPARK, "1", owner.pid) as server:
        serving = threading.Thread(target=server.serve)
        serving.start()
        owner.communicate(b"\n")
        serving.join(30)
        assert not serving.is_alive()


def test_a_server_that_uses_too_much_memory_removes_its_socket_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with JobServer(path, _SPARK, "1", os.getpid(), memory_bytes=1) as server:
        assert path.exists()
        server.serve()
    assert not path.exists()
