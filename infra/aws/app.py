"""`python -m infra.aws.app [--size NAME] [--out DIR]`: the CDK application, synthesized.

`cdk` runs it by cdk.json and says the size as context (`-c size=small`); by itself it needs neither `cdk` nor AWS, but
Node.js, in which the CDK's libraries are written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import App

from infra.aws.sizes.sizes import Size, SizesError, size
from infra.aws.stacks.alarms import AlarmsStack
from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.connect import ConnectStack
from infra.aws.stacks.dagster import DagsterStack
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.network import NetworkStack
from infra.aws.stacks.object_events import EventsStack
from infra.aws.stacks.quicksight import QuickSightStack
from infra.aws.stacks.spark import SparkStack
from infra.aws.stacks.stack_set import Parts
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack

_DEFAULT = "dev"
_FLAGS = {
    "@aws-cdk/core:validateAgainstDefaultRules": True,  # what CloudFormation would refuse is an error already here
    "@aws-cdk/core:checkSecretUsage": True,  # a secret in a property that is shown is an error
    "@aws-cdk/aws-iam:minimizePolicies": True,  # statements of equal resources become one
}
"""Here and not in cdk.json, which only `cdk` reads: what is checked has to be what is deployed."""


def application(folder: Path | None = None) -> App:
    """An empty application, which puts its templates into the folder (cdk's own without)."""
    return App(outdir=str(folder) if folder else None, analytics_reporting=False, context=_FLAGS)


def build(app: App, chosen: Size) -> Parts:
    """Every stack of an environment, in the order in which they are deployed."""
    network = NetworkStack(app, chosen)
    events = EventsStack(app, chosen)
    storage = StorageStack(app, chosen, events)
    catalog = CatalogStack(app, chosen)
    database = DatabaseStack(app, chosen, network)
    streaming = StreamingStack(app, chosen, network)
    connect = ConnectStack(app, chosen, database, streaming, storage)
    spark = SparkStack(app, chosen, network, database, streaming, storage, catalog)
    quicksight = QuickSightStack(app, chosen, storage, catalog)
    parts = Parts(network, events, storage, catalog, database, streaming, connect, spark, quicksight)
    DagsterStack(app, chosen, parts)
    AlarmsStack(app, chosen, database, streaming, events)
    return parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesize, and return the exit code: 2 where the size can't be used."""
    parser = argparse.ArgumentParser(prog="python -m infra.aws.app", description="Synthesize an environment's stacks.")
    parser.add_argument(
        "--size", help=f"an entry of infra/aws/sizes/sizes.yaml; `{_DEFAULT}`, or cdk's context, without"
    )
    parser.add_argument("--out", type=Path, help="the folder for the templates; cdk's own without")
    asked = parser.parse_args(arguments)
    app = application(asked.out)
    try:
        build(app, size(asked.size or app.node.try_get_context("size") or _DEFAULT))
    except SizesError as error:
        print(error, file=sys.stderr)
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
