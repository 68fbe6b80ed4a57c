"""`cdc-lake aws`: build and upload a plugin for MSK Connect, and run a test in an AWS account."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli.aws import smoke

aws = typer.Typer(help="Prepare and test an AWS account for pipelines.", no_args_is_help=True)
plugins = typer.Typer(help="Build and upload plugins for MSK Connect.", no_args_is_help=True)
aws.add_typer(plugins, name="plugins")

PLUGIN_FOLDER = Path("build/plugins")


def register(app: typer.Typer) -> None:
    """Add the command group `aws` to the application."""
    smoke.register(aws)
    app.add_typer(aws, name="aws")


@plugins.command()
def build(
    add: Annotated[
        list[Path] | None, typer.Option(help="A jar, or a zip or folder whose jars are added; can be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the zip and the plugin, before the hash.")] = "debezium",
    debezium: Annotated[bool, typer.Option(help="Include Debezium's jars, which `cdc-lake setup` downloaded.")] = (
        True
    ),
    avro: Annotated[
        bool | None,
        typer.Option(
            "--avro/--no-avro",
            help="Include Apicurio's Avro converter; default: if a pipeline uses Avro and Debezium is included.",
        ),
    ] = None,
    provider: Annotated[
        bool, typer.Option(help="Require the jar of the config provider that reads secrets from Secrets Manager.")
    ] = True,
    out: Annotated[Path, typer.Option(help="The folder for the zip.")] = PLUGIN_FOLDER,
) -> None:
    """Pack a plugin for MSK Connect into a zip whose name contains a hash of its jars, and print its path."""
    from cdc_lake.pipeline import avro_pipelines
    from infra.artifacts.artifacts import jars
    from resources.connect import plugin_archive

    folder = jars("debezium") if debezium else None
    # A connector on MSK Connect has exactly one plugin, so the connector's zip has to contain the converter.
    with_converter = debezium and bool(avro_pipelines.names()) if avro is None else avro
    converter = [jars("avro-converter")] if with_converter else []
    required_class = plugin_archive.CONFIG_PROVIDER if provider else None
    built = plugin_archive.build(name, folder, [*converter, *(add or ())], out, required_class)
    typer.echo(built.path)
    for artifact in built.duplicates:
        typer.echo(
            f"warning: the zip contains several versions of {artifact}, and Java may load any of them. Leave out all"
            " but one.",
            err=True,
        )


@plugins.command()
def upload(
    archive: Annotated[Path, typer.Argument(help="The zip that `cdc-lake aws plugins build` printed.", dir_okay=False)],
    bucket: Annotated[str, typer.Option(help="The bucket for plugins.")],
    prefix: Annotated[str, typer.Option(help="The prefix for plugins in the bucket.")] = "plugins/",
    region: Annotated[str, typer.Option(help="The region of the bucket and of MSK Connect.")] = "us-east-1",
    endpoint_url: Annotated[str | None, typer.Option(help="Endpoint of MSK Connect; default: AWS's.")] = None,
    s3_endpoint_url: Annotated[str | None, typer.Option(help="Endpoint of S3; default: AWS's.")] = None,
) -> None:
    """Upload the zip, create the custom plugin and print its ARN. An existing object or plugin is kept."""
    from resources.connect.plugin_archive import PluginInvalid
    from resources.msk_connect.plugins import MskPlugins

    if not archive.is_file():
        raise PluginInvalid(f"Cannot upload {archive}: there is no such file.", "Run `cdc-lake aws plugins build`.")
    target = MskPlugins(
        region=region, endpoint_url=endpoint_url, s3_endpoint_url=s3_endpoint_url, bucket=bucket, prefix=prefix
    )
    typer.echo(target.ensure(archive))
