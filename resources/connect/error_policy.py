"""The error policy of connectors: retry within a bound, then stop; never skip a record.

A configuration has to set it explicitly (docs/decisions/0012-bad-records.md): Connect retries nothing by default, and
some connectors skip by default what they cannot process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resources.errors import ConnectorConfigInvalid

_DEBEZIUM = "io.debezium."
_QUEUE = "errors.deadletterqueue.topic.name"

# Values that make a connector skip records.
_SKIPS_RECORDS = {
    "event.processing.failure.handling.mode": {"warn", "skip", "ignore"},
    "event.converting.failure.handling.mode": {"warn", "skip"},
    "connect.s3.error.policy": {"noop"},
    "behavior.on.error": {"ignore", "log"},
}
# Settings whose defaults are not to retry, to retry for ever, or to skip.
_REQUIRED_FOR_DEBEZIUM = (
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.max.retries",
    "event.processing.failure.handling.mode",
    "event.converting.failure.handling.mode",
)


def require_policy(where: str, settings: Mapping[str, str]) -> None:
    """Raise unless a connector's settings comply with the error policy.

    Raises:
        ConnectorConfigInvalid: a setting skips records, retries for ever, or is left at its default.
    """
    if faults := list(_faults(settings)):
        raise ConnectorConfigInvalid(
            f"Cannot use {where}: it violates the error policy: {'; '.join(faults)}. connectors/README.md lists the"
            " allowed values."
        )


def _faults(settings: Mapping[str, str]) -> Iterator[str]:
    for name, values in _SKIPS_RECORDS.items():
        if settings.get(name, "").lower() in values:
            yield f"{name}={settings[name]} skips records that cannot be processed"
    if settings.get("errors.tolerance") == "all" and not settings.get(_QUEUE):
        # Source connectors have no dead-letter queue: records that they tolerate are lost.
        yield f"errors.tolerance=all skips records without {_QUEUE}, which would keep them"
    if not settings.get("connector.class", "").startswith(_DEBEZIUM):
        return
    if settings.get("errors.tolerance") == "all" and settings.get(_QUEUE):
        yield f"errors.tolerance=all skips records: a source connector has no {_QUEUE}"
    for name in _REQUIRED_FOR_DEBEZIUM:
        if name not in settings:
            yield f"{name} is missing"
    for name in ("errors.retry.timeout", "errors.max.retries"):
        if settings.get(name) == "-1":
            yield f"{name}=-1 retries for ever, and the task stays RUNNING meanwhile"
