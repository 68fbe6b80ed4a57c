"""The flush rule: land as soon as `flush_records` records wait, or one record waits for `flush_seconds`."""

import time

import dagster as dg
from pydantic import BaseModel

from cdc_lake.pipeline.landing_spec import LandingSpec


class Wait(BaseModel):
    """When a table's records began to wait (seconds since 1970), and the newest manifest then, 0 without one."""

    manifest: int
    since: float


class FlushCursor(BaseModel):
    """The land sensor's cursor: the tables whose records wait."""

    waiting: dict[str, Wait] = {}


def describe(landing: LandingSpec) -> str:
    """Return the rule as text for the end of a sentence."""
    return (
        f"as soon as {landing.flush_records} records of a table wait, or one record waits for {landing.flush_seconds} s"
    )


def reason_to_wait(
    cursor: FlushCursor, table: str, landing: LandingSpec, behind: int, manifest: int
) -> dg.SkipReason | None:
    """Return why a table is not landed yet, or None to land it now.

    Args:
        cursor: the tables whose records wait; the function updates it.
        table: the table's name.
        landing: the pipeline's landing settings.
        behind: the number of offsets to land; negative if manifests are ahead of the topic, which the landing reports.
        manifest: the number of the table's newest manifest, 0 without one. Each new manifest restarts the waiting time.
    """
    if behind == 0:
        cursor.waiting.pop(table, None)
        return dg.SkipReason("everything is landed")
    wait = cursor.waiting.get(table)
    if wait is None or wait.manifest != manifest:
        wait = cursor.waiting[table] = Wait(manifest=manifest, since=time.time())
    waited = time.time() - wait.since
    if 0 < behind < landing.flush_records and waited < landing.flush_seconds:
        return dg.SkipReason(f"offsets to land: {behind}, waiting for {waited:.0f} s")
    return None
