"""EMR and EMR Serverless for the endpoint's gate, by the names that requests are signed for.

Here: wiring. Not here: what they answer (emr.py, emr_serverless.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.local.aws_endpoint.emr import EmrApi
from infra.local.aws_endpoint.emr_serverless import EmrServerlessApi
from infra.local.aws_endpoint.gate import Application
from infra.local.aws_endpoint.json_rpc import JsonRpc
from infra.local.aws_endpoint.rest_json import RestJson
from infra.local.aws_endpoint.spark_runs import Prepare, SparkRuns

_STEPS_AT_ONCE = 1  # of a cluster, unless it is told otherwise
_RUNS_AT_ONCE = 2  # what a small machine stands


def spark_services(state: Path, prepare: Prepare, s3: Any, region: str, logs: str) -> Mapping[str, Application]:  # noqa: ANN401
    """The services; `state` is their folder, `prepare` SparkHere's, `s3` boto3's client of the store, and `logs` the
    cluster's log URI, s3://bucket/folder/.
    """
    steps = SparkRuns(state / "emr", prepare, s3, _STEPS_AT_ONCE)
    runs = SparkRuns(state / "emr-serverless", prepare, s3, _RUNS_AT_ONCE)
    serverless = EmrServerlessApi(runs, region).operations
    return {
        "elasticmapreduce": JsonRpc("emr", EmrApi(steps, region, logs).operations),
        "emr-serverless": RestJson("emr-serverless", serverless, invalid="ValidationException"),
    }
