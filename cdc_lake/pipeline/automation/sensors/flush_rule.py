"""The flush rule: land as soon as `flush_records` records wait, or one record waits for `flush_seconds`."""

import time

import dagster as dg
from pydantic import BaseModel

from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.landing import LandingSpec


class Wait(BaseModel):
    """When a table's records began to wait (seconds since 1970), and the newest manifest then, 0 without one."""

    manifest: int
    since: float


class FlushCursor(BaseModel):
    """The land sensor's cursor: the tables whose records wait."""

    waiting: dict[str, Wait] = {}


def describe(pipeline: Pipeline) -> str:
    """Return the rule as text for the end of a sentence: the pipeline's, and those of tables with other limits."""
    rules = [("a table", pipeline.spec.landing), *((table.name, table.landing) for table in pipeline.tables)]
    texts = {
        name: f"{_records_wait(landing, name)} or one record waits for {landing.flush_seconds} s"
        for name, landing in rules
        if name == "a table" or _limits(landing) != _limits(pipeline.spec.landing)
    }
    return f"as soon as {'; or as soon as '.join(texts.values())}"


def _records_wait(landing: LandingSpec, name: str) -> str:
    count = landing.flush_records
    return f"1 record of {name} waits," if count == 1 else f"{count} records of {name} wait,"


def _limits(landing: LandingSpec) -> tuple[int, int]:
    return landing.flush_records, landing.flush_seconds


def reason_to_wait(
    cursor: FlushCursor, table: str, landing: LandingSpec, behind: int, manifest: int
) -> dg.SkipReason | None:
    """Return why a table is not landed yet, or None to land it now.

    Args:
        cursor: the tables whose records wait; the function updates it.
        table: the table's name.
        landing: the table's landing settings.
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
