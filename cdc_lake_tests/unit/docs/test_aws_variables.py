"""docs/aws.md lists exactly the variables that the aws profile reads."""

from __future__ import annotations

import re
from pathlib import Path

from cdc_lake.aws_settings import AwsSettings

PAGE = Path(__file__).parents[3] / "docs" / "aws.md"
WORKER = "CDC_LAKE_CONNECT_WORKER_<PIPELINE>"


def test_the_table_lists_the_variables_of_the_aws_profile() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## The variables")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([A-Z_<>]+)`", row)}
    assert documented == {field.alias for field in AwsSettings.model_fields.values() if field.alias} | {WORKER}
