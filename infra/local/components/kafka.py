"""The Kafka broker: one KRaft node, whose storage is formatted once."""

from __future__ import annotations

import shutil
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka.admin import AdminClient

from infra.artifacts.artifacts import jars
from infra.artifacts.class_path import ClassPath
from infra.artifacts.java import java_home
from infra.errors import StackError
from infra.files import write_atomic
from infra.local.components import hanging_transactions
from infra.local.engine_tools import run_tool
from infra.local.jvm import jar_version, java_command, temporary_option
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.templates import render

HEAP = "512m"
_CLEAN = ".kafka_cleanshutdown"
"""The file that a broker writes into its data folder when it ends, and deletes when it starts."""
_KILLED = "killed"
"""The file in the component's folder that is there from the start after a kill until the broker is repaired."""


class KafkaComponent:
    """Broker and controller in one process."""

    name = "kafka"
    port_names: tuple[str, ...] = ("kafka", "kafka_controller")
    needs: tuple[str, ...] = ()

    def version(self) -> str:
        """Return the broker's version."""
        return jar_version(jars("kafka"), "kafka-server")

    def prepare(self, context: StackContext) -> None:
        """Write the configuration; format the storage unless an earlier format was completed."""
        folder = context.folder(self.name)
        context.temporary(self.name)
        text = render(
            "kafka/server.properties",
            {
                "host": LOOPBACK,
                "port": context.ports["kafka"],
                "controller_port": context.ports["kafka_controller"],
                "data": folder / "data",
            },
        )
        write_atomic(folder / "server.properties", text)
        write_atomic(folder / "log4j2.properties", render("kafka/log4j2.properties", {}))
        formatted = folder / "formatted"
        if not formatted.exists():
            shutil.rmtree(folder / "data", ignore_errors=True)  # an incomplete format, which no broker has used
            cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            arguments = ("format", "--cluster-id", f"c{cluster[1:]}", "--config", str(folder / "server.properties"))
            command = self._command(folder, "kafka.tools.StorageTool", arguments, tool=True)
            run_tool(Launch(command), self.name, context.home)
            write_atomic(formatted, cluster)
        elif not (folder / "data" / _CLEAN).exists():
            (folder / _KILLED).touch()

    def launch(self, context: StackContext) -> Launch:
        """Return the broker's process."""
        folder = context.folder(self.name)
        return Launch(self._command(folder, "kafka.Kafka", (str(folder / "server.properties"),)))

    def _command(self, folder: Path, main: str, arguments: tuple[str, ...], *, tool: bool = False) -> tuple[str, ...]:
        log4j = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
        options = (log4j, f"-Dkafka.logs.dir={folder}", temporary_option(folder))
        return java_command(self.class_path(), main, arguments, HEAP, options, tool=tool)

    def class_path(self) -> ClassPath:
        """Return the broker's jars."""
        return ClassPath(self.name, java_home(25), (jars("kafka"),))

    def probe(self, context: StackContext) -> None:
        """Check that the broker returns its metadata."""
        address = f"{LOOPBACK}:{context.ports['kafka']}"
        client = AdminClient({"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 3000})
        if not client.list_topics(timeout=3).brokers:
            raise StackError(f"there is no broker at {address} yet")

    def after_ready(self, context: StackContext) -> None:
        """Repair the transactions of a broker that was killed; the pipelines create topics."""
        folder = context.folder(self.name)
        killed = folder / _KILLED
        if not killed.exists():
            return
        server = ("--bootstrap-server", f"{LOOPBACK}:{context.ports['kafka']}")

        def tool(arguments: tuple[str, ...]) -> str:
            command = self._command(folder, hanging_transactions.TOOL, (*server, *arguments), tool=True)
            return run_tool(Launch(command), self.name, context.home)

        hanging_transactions.abort(tool)
        killed.unlink()
