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

import pytest

from resources.object_store import ObjectStore
from resources.spark.job_server.client import SparkServerClient
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


@pytest.mark.parametrize(
    ("version", "answer"), [("1", "older code than the Spark server"), ("2", "Retired")], ids=["same", "other"]
)
def test_a_job_of_other_code_gets_an_answer(tmp_path: Path, version: str, answer: str) -> None:
    """The code of this server lacks a member of an enumeration that the sender's code has."""
    path = tmp_path / "socket"
    with JobServer(path, _SPARK, "1", os.getpid()) as server, socket.socket(socket.AF_UNIX) as client:
        serving = threading.Thread(target=server.serve)
        serving.start()
        client.connect(str(path))
        client.sendall(pickle.dumps(version) + pickle.dumps(Colour.red).replace(b"red", b"new"))
        assert answer in repr(pickle.load(client.makefile("rb")))  # noqa: S301 - of the server above
        server.retire()
        serving.join(30)
        assert not serving.is_alive()


def test_a_sender_that_is_killed_while_it_sends_does_not_replace_the_server(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with JobServer(path, _SPARK, "1", os.getpid()) as server:
        serving = threading.Thread(target=server.serve)
        serving.start()
        whole = pickle.dumps("1") + pickle.dumps(Colour.red)
        for length in (0, 3, len(whole) - 3):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(whole[:length])
                client.shutdown(socket.SHUT_WR)
                assert client.recv(1) == b""
        assert path.exists()
        server.retire()
        serving.join(30)


def test_an_edited_settings_file_or_module_is_another_version(tmp_path: Path) -> None:
    settings, log4j, code = tmp_path / "spark.properties", tmp_path / "log4j.properties", tmp_path / "code"
    code.mkdir()
    local = _SPARK.model_copy(update={"properties": [str(settings)], "log4j": str(log4j)})
    served = SparkServerClient(path="", spark=local, owner=1, log="", command=[], code=[str(code)])
    versions = [served.version()]
    for path in (settings, log4j, code / "job.py", code / "deeper" / "job.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
        versions.append(served.version())
    (code / "notes.txt").write_text("1")
    assert versions[-1] == served.version()
    assert len(set(versions)) == 5
