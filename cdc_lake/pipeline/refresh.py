"""Dashboards whose rows are read later than the lake changed: a run of each, once its time has come.

QuickSight takes so many ingestions a day: a run that comes too soon after the last one notes when the rows may be read
(`due`). Without this sensor they would wait for the next change of the source.

Here: when to launch. Not here: noting it (quicksight.py), and how runs follow one another (launch.py).
"""

import time
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract import names, notes
from cdc_lake.pipeline.flow import Flow, location
from cdc_lake.pipeline.launch import Tick, launch
from resources.object_store import ObjectStore

DUE = "due"
"""Of a dashboard's note: when its rows may be read, in seconds since 1970."""
_EVERY_SECONDS = 60


def build(flow: Flow) -> dg.SensorDefinition:
    """The sensor of a pipeline's dashboards."""
    keys = {PurePath(file).stem: flow.key("dashboard", PurePath(file).stem) for file in flow.spec.dashboards}

    @dg.sensor(
        name=f"{flow.name}_refresh",
        target=dg.AssetSelection.assets(*keys.values()),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reads the rows of dashboards that were read a short while before the lake changed.",
    )
    def refresh(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        bucket, now = location(store).store(), time.time()
        noted = {name: notes.read(bucket, names.note_key(flow.name, "dashboard", name)).get(DUE) for name in keys}
        waiting = {name: float(due) for name, due in noted.items() if due is not None}
        ready = sorted(name for name, due in waiting.items() if due <= now)
        if not ready:
            soon = min(waiting.values(), default=now) - now
            return dg.SkipReason(f"the next rows are read in {soon:.0f} s" if waiting else "no rows wait to be read")
        position = "refresh:" + ",".join(f"{name}@{waiting[name]:.0f}" for name in ready)
        return launch(context, flow.name, position, assets=[keys[name] for name in ready])

    return refresh
