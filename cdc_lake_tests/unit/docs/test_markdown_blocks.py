"""Blocks of a Markdown page, also in lists, and their commands."""

from __future__ import annotations

import pytest

from cdc_lake_tests.helpers.markdown_blocks import Block, blocks

PAGE = """\
```sh
cdc-lake up
```

1. A step:

   ```yaml
   a:
     b: 1
   ```

```console
$ cdc-lake down
stopped
```
"""


def test_blocks_have_their_language_and_no_indentation_of_the_list() -> None:
    assert list(blocks(PAGE)) == [
        Block("sh", "cdc-lake up\n"),
        Block("yaml", "a:\n  b: 1\n"),
        Block("console", "$ cdc-lake down\nstopped\n"),
    ]


@pytest.mark.parametrize(
    ("language", "text", "commands"),
    [("sh", "a\nb\n", ["a", "b"]), ("console", "$ a\noutput\n", ["a"]), ("text", "$ a\n", [])],
)
def test_commands_are_the_lines_of_a_shell_or_after_a_prompt(language: str, text: str, commands: list[str]) -> None:
    assert Block(language, text).commands() == commands
