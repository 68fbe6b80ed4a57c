"""Runs the blocks of docs/how-to, in a copy of the project, whose YAML the pages change.

Languages: `sh` runs in a shell, and `sql` at the source. If its first line names a file, `sql` is written to that file,
and `yaml` is merged into it. Commands in `console` do not run, and `text` is output.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cdc_lake_tests.helpers.command_line import BIN, ROOT, CommandLine
from cdc_lake_tests.helpers.markdown_blocks import Block, blocks
from cdc_lake_tests.helpers.project_copy import copy_project

PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "how-to").glob("*.md"))}
RUN = ("sh", "sql", "yaml")
OTHER = ("console", "text")
_FILE = re.compile(r"(?:#|--) (cdc_lake/defs/\w+/\w+\.(?:yaml|sql))\n")


class HowToPages:
    """The pages, and which of their blocks ran. Each page's blocks run in the page's order."""

    def __init__(self, cli: CommandLine, project: Path) -> None:
        self._cli, self._project = cli, project
        self._pages = {name: list(blocks(text)) for name, text in PAGES.items()}
        self._left = {name: [each for each in found if each.language in RUN] for name, found in self._pages.items()}
        self.ran: dict[str, list[Block]] = defaultdict(list)
        copy_project(project)

    def run(self, language: str, *pages: str, variables: Mapping[str, str] | None = None) -> str:
        """Run the next block of a page and return its output; run it once if it is the next block of several pages.

        Raises AssertionError if the block has another language, if the pages differ, or if it fails.
        """
        found = {name: self._left[name].pop(0) for name in pages}
        block = found[pages[0]]
        assert block.language == language, f"{pages[0]}: the next block is not {language}:\n{block.text}"
        assert set(found.values()) == {block}, f"these blocks run once, and differ: {found}"
        output = ""
        if language == "yaml":
            self._merge(block.text)
        elif language == "sql" and (file := _FILE.match(block.text)):
            self.write(file[1], block.text.encode())
        elif language == "sql":
            self._cli.query_source(f"{block.text}; select 1")
        else:
            output = self._shell(block.text, pages[0], variables or {})
        for name in pages:
            self.ran[name].append(block)
        return output

    def left(self) -> dict[str, list[str]]:
        """Return the first lines of the blocks that did not run, by page."""
        return {name: [each.text.splitlines()[0] for each in left] for name, left in self._left.items() if left}

    def consoles(self) -> set[str]:
        """Return the commands that no test runs."""
        return {
            line
            for found in self._pages.values()
            for each in found
            if each.language == "console"
            for line in each.commands()
        }

    def other_languages(self) -> set[str]:
        """Return the languages of blocks that no rule covers."""
        return {each.language for found in self._pages.values() for each in found} - {*RUN, *OTHER}

    def write(self, name: str, value: bytes) -> None:
        """Write a file in the project, as a user does with an editor."""
        (self._project / name).write_bytes(value)

    def _shell(self, text: str, page: str, variables: Mapping[str, str]) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self._project,
            env={
                **self._cli.environment,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "PYTHONPATH": str(self._project),
                "VIRTUAL_ENV": str(BIN.parent),
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"a command of {page} failed:\n{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _merge(self, text: str) -> None:
        name = _FILE.match(text)
        assert name, f"the first line names no file of the pipeline:\n{text}"
        file = self._project / name[1]
        file.parent.mkdir(exist_ok=True)
        before = yaml.safe_load(file.read_text()) if file.exists() else {}
        file.write_text(yaml.safe_dump(merged(before, yaml.safe_load(text)), sort_keys=False, allow_unicode=True))


def merged(before: Any, change: Any) -> Any:  # noqa: ANN401 - any YAML value
    """Return `before` with the change: mappings are merged, lists of named mappings by name, other values replaced."""
    if isinstance(before, dict) and isinstance(change, dict):
        return {**before, **{key: merged(before.get(key), value) for key, value in change.items()}}
    if isinstance(before, list) and all(isinstance(each, dict) and "name" in each for each in [*before, *change]):
        by_name = {each["name"]: each for each in before}
        return list(
            {**by_name, **{each["name"]: merged(by_name.get(each["name"], {}), each) for each in change}}.values()
        )
    return change
