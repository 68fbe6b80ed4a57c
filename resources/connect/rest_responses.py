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


class StatusResponse(BaseModel):
    """The response of GET /connectors/NAME/status: the state of a connector and its tasks."""

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


class OffsetsResponse(BaseModel):
    """The response of GET /connectors/NAME/offsets: the stored source offsets of a connector."""

    offsets: list[_Offset]

    def stored(self) -> tuple[dict[str, object], ...]:
        """Return the stored offsets; Connect can list deleted ones as null."""
        return tuple(entry.offset for entry in self.offsets if entry.offset is not None)


class _Value(BaseModel):
    name: str
    errors: list[str] = Field(default_factory=list)


class _Config(BaseModel):
    definition: dict[str, object] | None = None
    """None if neither the plugin nor Connect defines this setting; it then has an error."""
    value: _Value


class Plugin(BaseModel):
    """An element of the response of GET /connector-plugins: a plugin that the worker has."""

    class_name: str = Field(alias="class")


class ValidationResponse(BaseModel):
    """The response of PUT /connector-plugins/CLASS/config/validate: each setting with its definition and errors."""

    configs: list[_Config]

    def errors(self) -> dict[str, tuple[str, ...]]:
        """Return the errors by setting."""
        return {config.value.name: tuple(config.value.errors) for config in self.configs if config.value.errors}

    def names(self) -> frozenset[str]:
        """Return the names of all settings that the plugin and Connect define for this configuration."""
        return frozenset(config.value.name for config in self.configs if config.definition is not None)
