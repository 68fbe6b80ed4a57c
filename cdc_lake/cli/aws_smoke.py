"""`cdc-lake aws smoke`: Northwind once through a real account, from an empty database to the dashboard."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdc_lake.cli.local_only import profile
from cdc_lake.cli.northwind import PIPELINE, SMOKE, run, show, went_well
from resources.errors import ResourceError

if TYPE_CHECKING:
    from cdc_lake.aws_settings import AwsSettings
    from resources.identity import Identity

_AGAIN = ("cdc-lake aws smoke --resume",)
_CLEAN_UP = (
    f"cdc-lake reset {PIPELINE}    (connector, offsets, slot, topics, QuickSight's objects, tables, raw objects)",
    "at the source: DROP PUBLICATION cdc_publication; DROP SCHEMA datalake CASCADE;",
    "the stacks, which cost while idle: docs/infrastructure.md",
)


def register(aws: typer.Typer) -> None:
    """Add the command to the group."""
    aws.command()(smoke)


def smoke(
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    resume: Annotated[bool, typer.Option(help="Go on with one that was cut off.")] = False,
) -> None:
    """Run Northwind through the account that the variables name: load, each stage, the two stories, counts, verify.

    Exit code 1 where a count, a story, a check or the verification is not as it has to be.
    """
    from rich.console import Console

    from cdc_lake.demo.journal import Journal, alone
    from infra.local.home import find_home

    told, who = _account()
    console = Console(stderr=as_json)
    console.print(f"account {who.account}, {told.region}, as {who.arn}", highlight=False, soft_wrap=True)
    if not yes:
        typer.confirm(_question(told), abort=True, err=as_json)
    started = time.monotonic()
    file = find_home().path / SMOKE
    with alone(file):
        journal = Journal(file, resume)
        summary = run(console, None, journal, _AGAIN)
        summary["verify"] = journal.step("verify", lambda: _verified(console))
        summary["seconds"] = {**journal.seconds(), "total": round(time.monotonic() - started, 1)}
    summary["account"] = who.account
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        show(console, summary)
        for name, found in summary["verify"].items():
            verdict = "[green]equal[/]" if found["clean"] else "[red]not equal[/]"
            console.print(f"verify: {name}: {found['compared']:,} rows compared, {verdict}")
        for line in ("to clean up:", *(f"  {each}" for each in _CLEAN_UP)):
            console.print(line, highlight=False, soft_wrap=True)
    if not went_well(summary) or not all(found["clean"] for found in summary["verify"].values()):
        raise typer.Exit(1)


def _account() -> tuple[AwsSettings, Identity]:
    """The variables, and whose credentials these are. Raises ResourceError where they are of another account."""
    if profile() != "aws":
        raise ResourceError(
            f"`cdc-lake aws smoke` is for the profile aws, and CDC_LAKE_PROFILE is {profile()!r}.",
            "Set CDC_LAKE_PROFILE=aws and the variables of docs/aws.md; `cdc-lake demo` runs the same on this machine.",
        )
    from cdc_lake.aws_settings import AwsSettings
    from resources.identity import Sts

    told = AwsSettings.from_environment()
    who = Sts(region=told.region).identity()
    if who.account != told.account_id:
        raise ResourceError(
            f"The credentials are of account {who.account} ({who.arn}), and the variables name account"
            f" {told.account_id}: nothing was done.",
            "Set AWS_PROFILE to credentials of that account, or the variables to this one's.",
        )
    return told, who


def _question(told: AwsSettings) -> str:
    return (
        f"Start pipeline {PIPELINE} over in bucket {told.bucket}, catalog {told.catalog} and cluster"
        f" {told.kafka_cluster}, and load the sample anew into schema datalake of {told.source_database} at"
        f" {told.source_host}? What both hold now is dropped; what runs meanwhile is billed."
    )


def _verified(console: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - rich is imported late
    """By table: whether the lake is what the source is, and how many rows that was asked of."""
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations.verification import Systems, verify_tables
    from cdc_lake.profile import resolved, spark

    flow, bound = load(PIPELINE), resolved()
    seconds = bound["deployment"].stream_seconds
    systems = Systems(bound["postgres"], bound["kafka"], bound["connect"], bound["store"], spark())
    console.print("  verify           comparing source and lake …", highlight=False)
    found = verify_tables(flow, flow.tables, systems, seconds=seconds, apply=True)
    return {
        table.name: {"clean": report.clean, "compared": report.compared, "source_rows": report.source_rows}
        for table, report in found
    }
