"""The end of a Spark server, on a real socket. Tests of its jobs: integration/resources/test_spark_server.py."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from enum import StrEnum
from pathlib import Path

from resources.object_store import ObjectStore
from resources.spark.job_server.messages import Retired, version
from resources.spark.job_server.server import JobServer
from resources.spark.local import LocalSpark

_SPARK = LocalSpark(java_home="", jars="", properties=[], store=ObjectStore(bucket="none"))


class Colour(StrEnum):
    """An enumeration of the jobs' code."""

    red = "red"


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


def test_a_server_that_cannot_read_a_request_is_replaced(tmp_path: Path) -> None:
    """Code that was edited may have another class, or a member that an enumeration of this server lacks."""
    path = tmp_path / "socket"
    with JobServer(path, _SPARK, "1", os.getpid()) as server, socket.socket(socket.AF_UNIX) as client:
        serving = threading.Thread(target=server.serve)
        serving.start()
        client.connect(str(path))
        client.sendall(pickle.dumps(Colour.red).replace(b"red", b"new"))
        answer = pickle.load(client.makefile("rb"))  # noqa: S301 - of the server above
        assert isinstance(answer, Retired)
        serving.join(30)
        assert not serving.is_alive()


def test_an_edited_settings_file_or_module_is_another_version(tmp_path: Path) -> None:
    settings, code = tmp_path / "spark.properties", tmp_path / "code"
    code.mkdir()
    versions = [version("", [settings, code])]
    for path in (settings, code / "job.py", code / "deeper" / "job.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
        versions.append(version("", [settings, code]))
    (code / "notes.txt").write_text("1")
    assert versions[-1] == version("", [settings, code])
    assert len(set(versions)) == 4
