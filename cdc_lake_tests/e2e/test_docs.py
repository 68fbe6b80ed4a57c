"""The tutorial's commands, run in one shell as they stand."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from cdc_lake_tests.e2e.conftest import BIN, ROOT, CommandLine


def test_tutorial(demo: dict[str, Any], cli: CommandLine) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    assert demo["exit_code"] == 0
    path = f"{BIN}:{cli.environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=ROOT,
        env={**cli.environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The raw object shows the new date as days since 1970, the lake as a date.
    assert '"shipped_date":10397' in done.stdout
    assert "1998-06-20" in done.stdout
    assert "supplier_country" in done.stdout
