"""Names in a pipeline's YAML that would inject SQL or leave their object prefix or folder are rejected."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.pipeline.spec.pipeline import PipelineSpec
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

SPEC: dict[str, Any] = {
    "name": "shop",
    "source": {
        "database": "devdb",
        "schema": "sales",
        "tables": ["orders"],
        "publication": "pub",
        "checks": ["fault.sql"],
    },
    "stream": {"prefix": "shop"},
    "tables": [{"name": "orders", "key": ["order_id"], "partition_by": ["customer_id"]}],
    "targets": [{"name": "lake", "database": "lake"}],
    "datasets": ["totals.sql"],
    "dashboards": ["page.yaml"],
}
FIELDS = [
    ("name",),
    ("source", "database"),
    ("source", "schema"),
    ("source", "tables", 0),
    ("source", "publication"),
    ("source", "checks", 0),
    ("stream", "prefix"),
    ("tables", 0, "name"),
    ("tables", 0, "key", 0),
    ("tables", 0, "partition_by", 0),
    ("targets", 0, "name"),
    ("targets", 0, "database"),
    ("datasets", 0),
    ("dashboards", 0),
]
HOSTILE = [
    'x"; DROP TABLE orders; --',
    "x'; DROP TABLE orders; --",
    "x`y",
    "x y",
    "x;y",
    "x--",
    "x/*",
    "../x",
    "..",
    "/etc/passwd",
    "x/../../y",
    "x/y",
    "x\\y",
    "x\x00",
    "x\n",
    "x\r\ny",
    "~x",
    "$HOME",
    "${x}",
    "{{x}}",
    "x.y.z",
    "",
    "é",
    "x\u202e",
    "../x.sql",
    "/x.sql",
    "x.sql/../y.sql",
    "x.sql\n",
    "../page.yaml",
]


def test_the_unchanged_spec_is_valid() -> None:
    PipelineSpec.model_validate(SPEC)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: ".".join(map(str, field)))
def test_every_field_rejects_hostile_names(field: tuple[str | int, ...], count_trials: CountTrials) -> None:
    for hostile in HOSTILE:
        spec: Any = copy.deepcopy(SPEC)
        part = spec
        for step in field[:-1]:
            part = part[step]
        part[field[-1]] = hostile
        with pytest.raises(ValidationError):
            PipelineSpec.model_validate(spec)
        count_trials("hostile names refused", 1)


@pytest.mark.parametrize("hostile", [each for each in HOSTILE if each not in {"x--", "x.y.z"}])
def test_object_keys_reject_hostile_parts(hostile: str, count_trials: CountTrials) -> None:
    with pytest.raises(ContractError):
        object_names.require_safe(hostile, "part")
    count_trials("hostile names refused", 1)
