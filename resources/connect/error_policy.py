"""What a connector does about an error: retried within a bound, then stopped and seen; never passed over.

A connector's configuration has to say so itself (docs/decisions/0012-bad-records.md): Connect's defaults try nothing
again, and some connectors' defaults pass over what they can't handle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resources.errors import ConnectorConfigInvalid

_DEBEZIUM = "io.debezium."
_QUEUE = "errors.deadletterqueue.topic.name"

# Values with which a record is passed over, lost to whoever reads on.
_PASSES_OVER = {
    "event.processing.failure.handling.mode": {"warn", "skip", "ignore"},
    "event.converting.failure.handling.mode": {"warn", "skip"},
    "connect.s3.error.policy": {"noop"},
    "behavior.on.error": {"ignore", "log"},
}
# Whose defaults are to try nothing again, to try for ever, or to pass over.
_SAID_BY_DEBEZIUM = (
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.max.retries",
    "event.processing.failure.handling.mode",
    "event.converting.failure.handling.mode",
)


def require_policy(where: str, settings: Mapping[str, str]) -> None:
    """Make sure that a connector's settings are an error policy, and that it loses nothing.

    Raises:
        ConnectorConfigInvalid: a setting passes records over, tries for ever, or is left to its default.
    """
    if faults := list(_faults(settings)):
        raise ConnectorConfigInvalid(f"{where} is no error policy: {'; '.join(faults)} (connectors/README.md).")


def _faults(settings: Mapping[str, str]) -> Iterator[str]:
    for name, values in _PASSES_OVER.items():
        if settings.get(name, "").lower() in values:
            yield f"{name}={settings[name]} passes over records that can't be handled"
    if settings.get("errors.tolerance") == "all" and not settings.get(_QUEUE):
        # A source connector has no such queue: what it tolerates is gone.
        yield f"errors.tolerance=all passes over records where no {_QUEUE} keeps them"
    if not settings.get("connector.class", "").startswith(_DEBEZIUM):
        return
    if settings.get("errors.tolerance") == "all" and settings.get(_QUEUE):
        yield f"errors.tolerance=all passes over records: a source connector has no {_QUEUE}"
    for name in _SAID_BY_DEBEZIUM:
        if name not in settings:
            yield f"{name} is missing"
    for name in ("errors.retry.timeout", "errors.max.retries"):
        if settings.get(name) == "-1":
            yield f"{name}=-1 tries for ever, and the task looks RUNNING meanwhile"
