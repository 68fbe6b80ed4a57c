"""Types of dataclass fields that may hold a secret: the JSON of a spec never contains one.

More people may read a spec on its way to another machine than may read its secrets. jobs/remote/spec_json.py writes
and reads the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer, PlainValidator, SerializationInfo, ValidationInfo

SOURCE_PASSWORD = "source-password"  # noqa: S105 - a name
_SECRET_SETTING = re.compile(r"password|secret|jaas|credential|passphrase|private", re.IGNORECASE)


@dataclass(frozen=True)
class Secrets:
    """The context for writing and reading a spec: references to secrets by name, and a function that looks one up."""

    references: Mapping[str, str]
    look_up: Callable[[str], str]


def _reference(_: str, info: SerializationInfo[Secrets]) -> dict[str, str | None]:
    return {"secret": info.context.references.get(SOURCE_PASSWORD)}


def _look_up(value: object, info: ValidationInfo[Secrets]) -> str:
    match value:
        case {"secret": None}:
            raise ValueError(
                f"there is no reference to the secret {SOURCE_PASSWORD!r}; store it in Secrets Manager, and name it in "
                "the resource that starts jobs"
            )
        case {"secret": str(reference)}:
            return info.context.look_up(reference)
    raise ValueError("this is not a reference to a secret")


def _without_secrets(settings: Mapping[str, str]) -> Mapping[str, str]:
    for name in settings:
        if _SECRET_SETTING.search(name):
            raise ValueError(f"{name!r} may hold a secret; set it in the settings of the cluster")
    return settings


RoleKey = Annotated[str | None, PlainSerializer(lambda _: None)]
"""Not written: the job takes credentials from its role or its environment."""

SourcePassword = Annotated[str, PlainSerializer(_reference), PlainValidator(_look_up)]
"""Written as a reference to the secret."""

OpenSettings = Annotated[Mapping[str, str], AfterValidator(_without_secrets)]
"""Settings that are written in plain text; a setting whose name suggests a secret is rejected."""
