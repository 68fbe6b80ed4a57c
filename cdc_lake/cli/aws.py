"""`cdc-lake aws`: what has to be in an AWS account before a pipeline runs there, and CDK doesn't make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli import aws_smoke

aws = typer.Typer(help="What a pipeline on AWS needs beside its stacks.", no_args_is_help=True)
plugins = typer.Typer(help="Plugins of MSK Connect.", no_args_is_help=True)
aws.add_typer(plugins, name="plugins")

BUILT = Path("build/plugins")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    aws_smoke.register(aws)
    app.add_typer(aws, name="aws")


@plugins.command()
def build(
    add: Annotated[
        list[Path] | None, typer.Option(help="A jar or a vendor's zip whose jars go in too; can be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(help="What the zip and the plugin are called, before the hash.")] = "debezium",
    debezium: Annotated[bool, typer.Option(help="Whether Debezium's jars, which `cdc-lake setup` fetched, go in.")] = (
        True
    ),
    provider: Annotated[
        bool, typer.Option(help="Whether the workers read Secrets Manager, so that the provider's jar has to be in.")
    ] = True,
    out: Annotated[Path, typer.Option(help="The folder for the zip.")] = BUILT,
) -> None:
    """Pack a plugin for MSK Connect into a zip that is named by its content, and print its path."""
    from infra.local.artifacts import jars
    from resources import connect_plugin

    folder = jars("debezium") if debezium else None
    asked = connect_plugin.CONFIG_PROVIDER if provider else None
    built = connect_plugin.build(name, folder, add or (), out, asked)
    typer.echo(built.path)
    for artifact in built.several:
        typer.echo(f"warning: {artifact} is in it in more than one version; they share one class loader", err=True)


@plugins.command()
def upload(
    archive: Annotated[Path, typer.Argument(help="What `cdc-lake aws plugins build` printed.", dir_okay=False)],
    bucket: Annotated[str, typer.Option(help="The bucket for plugins.")],
    prefix: Annotated[str, typer.Option(help="The prefix for plugins in it.")] = "plugins/",
    region: Annotated[str, typer.Option(help="The region of bucket and MSK Connect.")] = "us-east-1",
    endpoint_url: Annotated[str | None, typer.Option(help="Another address for MSK Connect than AWS's.")] = None,
    s3_endpoint_url: Annotated[str | None, typer.Option(help="Another address for S3 than AWS's.")] = None,
) -> None:
    """Put the zip into the bucket, make the custom plugin of it, and print its ARN; what is there already stays."""
    from resources.connect_plugin import PluginInvalid
    from resources.msk_connect_plugins import MskPlugins

    if not archive.is_file():
        raise PluginInvalid(f"{archive} is not there.", "Run `cdc-lake aws plugins build`.")
    target = MskPlugins(
        region=region, endpoint_url=endpoint_url, s3_endpoint_url=s3_endpoint_url, bucket=bucket, prefix=prefix
    )
    typer.echo(target.ensure(archive))
