"""dagster-webserver with OwnPagesOnly (requests.py) around its application."""

from __future__ import annotations

from typing import Any

from dagster_webserver import cli
from dagster_webserver.app import create_app_from_workspace_process_context
from starlette.applications import Starlette

from cdc_lake.webserver.requests import OwnPagesOnly


def application(*arguments: Any, **options: Any) -> Starlette:  # noqa: ANN401 - those of Dagster's function
    """Return Dagster's application, with the middleware outermost."""
    app = create_app_from_workspace_process_context(*arguments, **options)
    app.add_middleware(OwnPagesOnly)
    return app


def main() -> None:
    """Run the server until the process ends."""
    # The command calls this function to create its application, and offers no other way to add a middleware.
    cli.create_app_from_workspace_process_context = application  # type: ignore[attr-defined]
    cli.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
