"""The error policy of connectors: retry within a bound, then stop; never skip a record.

Each configuration has to set the policy explicitly (docs/decisions/0012-bad-records.md): by default, Connect does not
retry, and some connectors skip records that they cannot process.
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
# Settings whose default is no retry, endless retries or skipped records.
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
        ConnectorConfigInvalid: a setting skips records or retries forever, or a required setting is missing.
    """
    if faults := list(_faults(settings)):
        raise ConnectorConfigInvalid(
            f"Cannot use {where}: it violates the error policy: {'; '.join(faults)}. Correct these settings; the policy"
            " is in connectors/README.md."
        )


def _faults(settings: Mapping[str, str]) -> Iterator[str]:
    for name, values in _SKIPS_RECORDS.items():
        if settings.get(name, "").lower() in values:
            yield f"{name}={settings[name]} skips records that cannot be processed"
    if settings.get("errors.tolerance") == "all" and not settings.get(_QUEUE):
        # Without a dead-letter queue, the records that a connector tolerates are lost.
        yield f"errors.tolerance=all loses records unless {_QUEUE} is set"
    if not settings.get("connector.class", "").startswith(_DEBEZIUM):
        return
    if settings.get("errors.tolerance") == "all" and settings.get(_QUEUE):
        yield f"errors.tolerance=all skips records: a source connector has no {_QUEUE}"
    for name in _REQUIRED_FOR_DEBEZIUM:
        if name not in settings:
            yield f"{name} is missing"
    for name in ("errors.retry.timeout", "errors.max.retries"):
        if settings.get(name) == "-1":
            yield f"{name}=-1 retries forever, and the task stays RUNNING meanwhile"
