"""A second Kafka Connect worker on a running stack, without exactly-once, like MSK Connect's workers."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.components.connect import ConnectComponent
from infra.local.stack.component import LOOPBACK, Secrets, StackContext
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ResourceError
from resources.waiting import until


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])


@dataclass
class SecondWorker:
    """A worker with the settings of `first`, the worker of the stack in `home`. Names, port and exactly-once differ."""

    home: Path
    first: KafkaConnect
    port: int = field(default_factory=_free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> KafkaConnect:
        """Return the worker's client."""
        found: KafkaConnect = self.first.model_copy(update={"url": f"http://{LOOPBACK}:{self.port}"})
        return found

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        folder = self.home / "connect"
        settings = (folder / "worker.properties").read_text()
        replacements = {
            f":{_port(self.first)}\n": f":{self.port}\n",
            f"port={_port(self.first)}\n": f"port={self.port}\n",
            "cdc-lake-connect": "cdc-lake-second",
            "exactly.once.source.support=enabled": "exactly.once.source.support=disabled",
        }
        for before, after in replacements.items():
            assert before in settings, before
            settings = settings.replace(before, after)
        file = folder / "second.properties"
        file.write_text(settings)
        launch = ConnectComponent().launch(StackContext(self.home, {}, Secrets("", "", "", "", "")))
        command = [str(file) if each == str(folder / "worker.properties") else each for each in launch.argv]
        with (self.home / "logs" / "second.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until(self._answers, bool, seconds=180, what="the second Connect worker to answer")

    def stop(self, *, kill: bool = False) -> None:
        """Stop the process by SIGTERM or SIGKILL, and wait until it has ended."""
        assert self._process is not None
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (
            f"the worker ended: {(self.home / 'logs' / 'second.log').read_text()[-2000:]}"
        )
        try:
            self.connect.get("missing")  # answered only by a worker that has joined its group
        except ResourceError:
            return False
        return True


def _port(connect: KafkaConnect) -> int:
    return int(connect.url.rstrip("/").rpartition(":")[2])
