"""Models of the responses of Kafka Connect's REST interface: the parts that are used."""

from __future__ import annotations

from pydantic import BaseModel, Field

from resources.connect.connector_interface import ConnectorStatus, TaskStatus


class _State(BaseModel):
    state: str
    worker_id: str = ""
    trace: str | None = None


class _Task(_State):
    id: int


class StatusPage(BaseModel):
    """GET /connectors/NAME/status."""

    name: str
    connector: _State
    tasks: list[_Task]

    def status(self) -> ConnectorStatus:
        """Return the status as a ConnectorStatus."""
        tasks = tuple(TaskStatus(t.id, t.state, t.worker_id, t.trace) for t in self.tasks)
        return ConnectorStatus(self.name, self.connector.state, tasks, self.connector.trace)


class _Offset(BaseModel):
    partition: dict[str, object]
    offset: dict[str, object] | None


class OffsetsPage(BaseModel):
    """GET /connectors/NAME/offsets."""

    offsets: list[_Offset]

    def stored(self) -> tuple[dict[str, object], ...]:
        """Return the stored offsets; Connect can list deleted ones as null."""
        return tuple(entry.offset for entry in self.offsets if entry.offset is not None)


class _Value(BaseModel):
    name: str
    errors: list[str] = Field(default_factory=list)


class _Config(BaseModel):
    definition: dict[str, object] | None = None
    """None for a setting with an error that the plugin does not define."""
    value: _Value


class Plugin(BaseModel):
    """An element of GET /connector-plugins."""

    kind: str = Field(alias="class")


class ValidationPage(BaseModel):
    """PUT /connector-plugins/CLASS/config/validate."""

    configs: list[_Config]

    def errors(self) -> dict[str, tuple[str, ...]]:
        """Return the errors by setting."""
        return {config.value.name: tuple(config.value.errors) for config in self.configs if config.value.errors}

    def names(self) -> frozenset[str]:
        """Return the names of all settings that the plugin and Connect define for this configuration."""
        return frozenset(config.value.name for config in self.configs if config.definition is not None)
