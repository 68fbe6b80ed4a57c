"""The private parts of Dagster that this project uses; a failure after an upgrade says what to adapt."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import dagster as dg

import cdc_lake

ROOT = Path(cdc_lake.__file__).parents[1]
PRODUCT = [file for package in ("cdc_lake", "resources", "infra") for file in (ROOT / package).rglob("*.py")]


IMPORTED = {"cdc_lake/webserver/dev.py": ["dagster._cli.dev", "dagster._cli.main"]}


def test_only_known_private_modules_of_dagster_are_imported() -> None:
    found = {str(file.relative_to(ROOT)): private for file in PRODUCT if (private := private_imports(file))}
    assert found == IMPORTED


def test_dagster_dev_starts_the_web_server_through_the_function_that_we_wrap() -> None:
    """webserver/dev.py wraps `dagster._cli.dev.open_ipc_subprocess`, which is given `-m dagster_webserver`."""
    advice = "Dagster starts its web server differently: adapt cdc_lake/webserver/dev.py, whose server checks requests."
    command = inspect.getsource(importlib.import_module("dagster._cli.dev").dev_command_impl)
    assert re.search(r'open_ipc_subprocess\(\s*\[sys.executable, "-m", "dagster_webserver"\]', command), advice


def test_the_code_server_starts_runs_with_the_context_that_we_change() -> None:
    """run_processes.py replaces the process class of multiprocessing's context `spawn`."""
    advice = "Dagster starts its runs differently: adapt cdc_lake/run_processes.py, which makes them forks."
    server = inspect.getsource(importlib.import_module("dagster._grpc.server"))
    assert 'self._mp_ctx = multiprocessing.get_context("spawn")' in server, advice
    assert re.search(r"execution_process = self\._mp_ctx\.Process\(", server), advice


def test_the_decorated_function_of_a_check_is_accessible() -> None:
    """fakes/dagster.py calls `AssetChecksDefinition.op.compute_fn.decorated_fn`.

    There is no public access to the function below @asset_check, and calling the check re-creates its resources.
    """

    @dg.asset_check(asset="orders")
    def complete() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True, description="as written")

    function = getattr(getattr(complete.op, "compute_fn", None), "decorated_fn", None)
    assert function is not None, (
        "Dagster has moved the decorated function of a check. Find it in dagster/_core/definitions/decorators/"
        "op_decorator.py (DecoratedOpFunction) and adapt "
        "cdc_lake_tests/fakes/dagster.py, "
        "or return the functions from the checks' builders together with their definitions."
    )
    assert function().description == "as written"


def private_imports(file: Path) -> list[str]:
    """Return the modules of Dagster with a leading underscore that a file imports."""
    imported = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in imported if name.startswith("dagster") and "._" in name]
