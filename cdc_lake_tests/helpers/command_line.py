"""`cdc-lake` and other programs of the virtual environment, run on a stack."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from cdc_lake_tests.helpers.markdown_blocks import blocks
from infra.local.stack.attach import load_endpoints
from infra.local.stack.stack import Stack

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class CommandLine:
    """`cdc-lake` and other programs on one stack."""

    stack: Stack
    environment: dict[str, str]

    def run(self, *command: str, timeout: float = 600, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the virtual environment; with `ok`, fail on an exit code other than 0."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if ok:
            output = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{output}"
        return done

    def run_page(self, page: str, section: str = "") -> tuple[list[str], str]:
        """Run the `sh` blocks of a page below docs/, or of a section of it, in one shell; return blocks and output."""
        text = (ROOT / "docs" / page).read_text()
        if section:
            text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        commands = [block.text for block in blocks(text) if block.language == "sh"]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=ROOT,
            env={**self.environment, "PATH": f"{BIN}:{self.environment['PATH']}"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return commands, done.stdout

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of the virtual environment, without waiting for it; its output is discarded."""
        return subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Run an Athena query by `cdc-lake query`, and return its rows."""
        rows: list[dict[str, Any]] = json.loads(self.run("cdc-lake", "query", sql, "--format", "json").stdout)
        return rows

    def query_source(self, sql: str) -> list[tuple[Any, ...]]:
        """Run and commit a statement at the source, and return its rows."""
        endpoints = load_endpoints(self.stack.home.path)
        login: dict[str, Any] = {
            "host": endpoints.postgres_host,
            "port": endpoints.postgres_port,
            "user": endpoints.postgres_user,
            "dbname": "devdb",
        }
        password = endpoints.postgres_password.get_secret_value()
        with (
            closing(psycopg2.connect(**login, password=password)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            return cursor.fetchall()
