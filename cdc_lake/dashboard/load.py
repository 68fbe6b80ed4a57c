"""Reading a dashboard's YAML file.

Here: the file and the wording of what is wrong with it. Not here: the rules themselves (spec.py).
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.spec import DashboardSpec

_KINDS = {"visuals": ("bar", "scatter"), "quicksight": ("pie", "scatter")}
"""The kinds of charts in the declaration's parts."""


def load_dashboard(path: Path) -> DashboardSpec:
    """The dashboard declared in the YAML file at `path`; its `.sql` files are read from the same folder.

    Raises DashboardError, one line a fault, each naming file, field and what is allowed.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DashboardError(f"{path}: can't be read ({error.strerror}); name an existing YAML file") from error
    except yaml.YAMLError as error:
        raise DashboardError(f"{path}: is not valid YAML: {error}") from error
    try:
        return DashboardSpec.model_validate(given, context={"folder": path.parent})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise DashboardError("\n".join(f"{path}: {_describe(fault)}" for fault in faults)) from error


def _describe(fault: ErrorDetails) -> str:
    field = _field(fault["loc"])
    context = fault.get("ctx", {})
    kinds = ", ".join(_KINDS.get(str(next(iter(fault["loc"]), "")), ()))
    if fault["type"] == "union_tag_invalid":
        return f"{field}.kind: '{context['tag']}' is unknown; allowed: {kinds}"
    if fault["type"] == "union_tag_not_found":
        return f"{field}: missing field 'kind'; allowed: {kinds}"
    if fault["type"] == "value_error":
        text = str(context["error"])
    elif fault["type"] == "fields":
        text = fault["msg"]
    else:
        text = f"{fault['msg']}, got {fault['input']!r}"
    return f"{field}: {text}" if field else text


def _field(loc: tuple[int | str, ...]) -> str:
    """`visuals[0].chart.x` for ('visuals', 0, 'chart', 'bar', 'x'): the kind in it is pydantic's, not the file's."""
    path = ""
    for position, part in enumerate(loc):
        if position and loc[position - 1] == "chart" and part in _KINDS.get(str(loc[0]), ()):
            continue
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path
