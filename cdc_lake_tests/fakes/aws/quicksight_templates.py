"""Copies of Northwind's QuickSight templates with another id and title."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cdc_lake
from cdc_lake.dashboard import load_dashboard
from cdc_lake.dashboard.quicksight import templates
from resources.quicksight.templates import Template

NORTHWIND = Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml"
TEMPLATES = replace(templates(load_dashboard(NORTHWIND), "shop-sales"), title="Sales")
SELECTED = {
    "customer_id": "varchar",
    "order_id": "integer",
    "quantity": "integer",
    "unit_price": "decimal",
    "discount": "decimal",
}
"""The columns of the SQL with Trino's raw types."""


def edited(template: Template, edit: Callable[[dict[str, Any]], object]) -> Template:
    """Return a copy of a template after an edit of its content."""
    content = copy.deepcopy(template.content)
    edit(content)
    return replace(template, content=content)
