"""`cdc-lake aws smoke`: run Northwind once in an AWS account, from an empty database to the dashboard."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdc_lake.cli.local_only import profile
from cdc_lake.cli.samples.run_demo import SMOKE_JOURNAL, DemoPipeline, run, show, succeeded
from resources.errors import ResourceError

if TYPE_CHECKING:
    from cdc_lake.aws_settings import AwsSettings
    from resources.aws.identity import Identity

PIPELINE = DemoPipeline.NORTHWIND
_RESUME_COMMANDS = ("cdc-lake aws smoke --resume",)
_CLEAN_UP = (
    f"cdc-lake reset {PIPELINE}    (connector, offsets, slot, topics, QuickSight's objects, tables, raw objects)",
    "at the source: DROP PUBLICATION cdc_publication; DROP SCHEMA datalake CASCADE;",
    "the stacks, some of which are billed while idle: docs/infrastructure.md",
)


def register(aws: typer.Typer) -> None:
    """Add the command to the group."""
    aws.command()(smoke)


def smoke(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = False,
) -> None:
    """Run Northwind once in the AWS account of the environment variables, and compare source and lake.

    The run loads the sample, materialises all stages, makes three changes at the source, counts the rows and verifies
    the tables. The exit code is 1 if one of these or a check fails.
    """
    from rich.console import Console

    from cdc_lake.demo.demos import UserRows
    from cdc_lake.demo.journal import Journal, exclusive
    from infra.folders import state_folder

    settings, identity = _account()
    console = Console(stderr=as_json)
    console.print(f"account {identity.account}, {settings.region}, as {identity.arn}", highlight=False, soft_wrap=True)
    file = state_folder() / SMOKE_JOURNAL
    if not yes:
        typer.confirm(_confirmation(settings, continued=resume and file.exists()), abort=True, err=as_json)
    started = time.monotonic()
    with exclusive(file):
        journal = Journal(file, resume)
        summary = run(console, PIPELINE, UserRows(), journal, _RESUME_COMMANDS)
        summary["verify"] = journal.step("verify", lambda: _verify(console))
        summary["seconds"] = {**journal.seconds(), "total": round(time.monotonic() - started, 1)}
        if not all(table["clean"] for table in summary["verify"].values()):
            journal.forget("verify")  # after the repair of a table, --resume compares again
    summary["account"] = identity.account
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        show(console, summary, "Northwind")
        for line in ("to clean up:", *(f"  {each}" for each in _CLEAN_UP)):
            console.print(line, highlight=False, soft_wrap=True)
    if not succeeded(summary):
        raise typer.Exit(1)


def _account() -> tuple[AwsSettings, Identity]:
    """Return the settings and the caller's identity. Raises ResourceError for another profile or different accounts."""
    if profile() != "aws":
        raise ResourceError(
            f"Cannot run `cdc-lake aws smoke`: CDC_LAKE_PROFILE is {profile()!r}.",
            "Set CDC_LAKE_PROFILE=aws and the variables of docs/aws.md. `cdc-lake demo` is the local equivalent.",
        )
    from cdc_lake.aws_settings import AwsSettings
    from resources.aws.identity import Sts

    settings = AwsSettings.from_environment()
    identity = Sts(region=settings.region).identity()
    if identity.account != settings.account_id:
        raise ResourceError(
            f"Cannot use the credentials of {identity.arn}: they belong to account {identity.account}, but"
            f" CDC_LAKE_QUICKSIGHT_ROLE names account {settings.account_id}. Nothing was changed.",
            "Set AWS_PROFILE to credentials of that account, or CDC_LAKE_QUICKSIGHT_ROLE and the other "
            "variables of docs/aws.md to this account's.",
        )
    return settings, identity


def _confirmation(settings: AwsSettings, *, continued: bool) -> str:
    if continued:
        return (
            f"This continues the interrupted run of pipeline {PIPELINE} in bucket {settings.bucket}; AWS bills the"
            " resources used. Continue?"
        )
    return (
        f"This deletes the data of pipeline {PIPELINE} in bucket {settings.bucket}, catalog {settings.catalog} and"
        f" cluster {settings.kafka_cluster}, and schema datalake of database {settings.source_database} at"
        f" {settings.source_host}. Then it loads the sample and runs the pipeline; AWS bills the resources used."
        " Continue?"
    )


def _verify(console: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - rich is imported late
    """Compare source and lake; return for each table whether they are equal, and how many rows were compared."""
    from cdc_lake.demo.verification import compare
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved, spark

    console.print("  verify           comparing source and lake …", highlight=False)
    return compare(load(PIPELINE), resolved(), spark())
