"""The Typer application `cdc-lake`: registers all commands and prints errors."""

from __future__ import annotations

import gc
import os
import sys
import traceback

import typer
from rich.console import Console
from rich.text import Text

from cdc_lake.cli.aws import commands as aws
from cdc_lake.cli.data import dlq, query, raw, table, topic
from cdc_lake.cli.local_stack import demo, dev, stack
from cdc_lake.cli.pipeline import connectors, maintenance, migrate, reset, resnapshot, run, verify
from cdc_lake.cli.printable import printable
from cdc_lake.cli.samples import load

DEBUG_VARIABLE = "CDC_LAKE_DEBUG"
_GC_THRESHOLDS = (100_000, 20, 20)
"""With Python's default of 700 new objects, the garbage collector takes a fifth of the imports' CPU time."""
COMMANDS = (
    stack,
    load,
    topic,
    raw,
    dlq,
    query,
    table,
    demo,
    reset,
    resnapshot,
    migrate,
    maintenance,
    run,
    verify,
    connectors,
    aws,
    dev,
)
"""Modules with a function `register(app)`."""

app = typer.Typer(
    name="cdc-lake",
    help="Change data capture from PostgreSQL into a data lake, on this machine or on AWS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for module in COMMANDS:
    module.register(app)


def main() -> None:
    """Run the command line.

    An error with a `user_message` is printed as that message; the exit code is the error's `exit_code`, else 1.
    With CDC_LAKE_DEBUG=1 its traceback is printed instead.
    """
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        app()
    except Exception as error:  # noqa: BLE001 - also an error whose traceback is printed has its exit code
        message = getattr(error, "user_message", None)
        if not isinstance(message, str) or os.environ.get(DEBUG_VARIABLE) == "1":
            traceback.print_exc()
        else:
            Console(stderr=True).print(Text(printable(f"error: {message}"), style="red"), soft_wrap=True)
        sys.exit(getattr(error, "exit_code", 1))


if __name__ == "__main__":
    main()
