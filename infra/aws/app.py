"""Synthesizes the stacks of infra/aws/stacks/, where resources are added; their permissions are in infra/aws/iam/.

    python -m infra.aws.app [--size NAME] [--out DIR]

`cdk` runs this module as cdk.json defines, with the size as context (`-c size=small`). Run without `cdk`, the module
needs Node.js, in which the CDK's libraries are written, but no access to AWS.
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
from infra.aws.stacks.dagster.stack import DagsterStack
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.network import NetworkStack
from infra.aws.stacks.object_events import EventsStack
from infra.aws.stacks.quicksight import QuickSightStack
from infra.aws.stacks.shared.stack_set import StackSet
from infra.aws.stacks.spark import SparkStack
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack

_DEFAULT = "dev"
_FLAGS = {
    "@aws-cdk/core:validateAgainstDefaultRules": True,  # report what CloudFormation would reject
    "@aws-cdk/core:checkSecretUsage": True,  # reject secrets in properties that are not secret
    "@aws-cdk/aws-iam:minimizePolicies": True,  # merge statements with equal resources
}
"""Feature flags of the CDK. They are not in cdk.json, which only `cdk` reads, because `make infra` has to check the
same templates that are deployed."""


def application(folder: Path | None = None) -> App:
    """Return an empty application that writes its templates to the folder; None: the one that `cdk` chooses."""
    return App(outdir=str(folder) if folder else None, analytics_reporting=False, context=_FLAGS)


def build(app: App, chosen: Size) -> StackSet:
    """Create all stacks of an environment, in the order of their deployment."""
    network = NetworkStack(app, chosen)
    events = EventsStack(app, chosen)
    storage = StorageStack(app, chosen, events)
    catalog = CatalogStack(app, chosen)
    database = DatabaseStack(app, chosen, network)
    streaming = StreamingStack(app, chosen, network)
    connect = ConnectStack(app, chosen, database, streaming, storage)
    spark = SparkStack(app, chosen, network, database, streaming, storage, catalog)
    quicksight = QuickSightStack(app, chosen, storage, catalog)
    stacks = StackSet(network, events, storage, catalog, database, streaming, connect, spark, quicksight)
    DagsterStack(app, chosen, stacks)
    AlarmsStack(app, chosen, database, streaming, events)
    return stacks


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesize; return the exit code, which is 2 if the size is not valid."""
    parser = argparse.ArgumentParser(prog="python -m infra.aws.app", description="Synthesize an environment's stacks.")
    parser.add_argument(
        "--size", help=f"an entry of infra/aws/sizes/sizes.yaml; default: `-c size=...`, or `{_DEFAULT}`"
    )
    parser.add_argument(
        "--out", type=Path, help="the folder for the templates; default: the folder that `cdk` chooses (cdk.out)"
    )
    args = parser.parse_args(arguments)
    app = application(args.out)
    try:
        build(app, size(args.size or app.node.try_get_context("size") or _DEFAULT))
    except SizesError as error:
        print(error, file=sys.stderr)
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
