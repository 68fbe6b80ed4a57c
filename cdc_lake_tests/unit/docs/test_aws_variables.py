"""docs/aws.md has each variable of the aws profile, and none that nobody reads."""

from __future__ import annotations

import re
from pathlib import Path

from cdc_lake.aws_settings import AwsSettings

PAGE = Path(__file__).parents[3] / "docs" / "aws.md"
WORKER = "CDC_LAKE_CONNECT_WORKER_<PIPELINE>"


def test_the_table_is_what_is_read() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## The variables")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([A-Z_<>]+)`", row)}
    assert named == {field.alias for field in AwsSettings.model_fields.values() if field.alias} | {WORKER}
