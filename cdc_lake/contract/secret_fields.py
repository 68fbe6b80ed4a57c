"""Types of dataclass fields that may hold a secret: a job spec's JSON contains a reference instead of the secret.

More people can read a spec that is sent to another machine than may read its secrets. jobs/remote/spec_json.py writes
and reads the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer, PlainValidator, SerializationInfo, ValidationInfo

SOURCE_PASSWORD = "source-password"  # noqa: S105 - a name
REGISTRY_AUTHORIZATION = "registry-authorization"
HASH_SALT = "hash-salt"
_SECRET_SETTING = re.compile(r"password|secret|jaas|credential|passphrase|private", re.IGNORECASE)


@dataclass(frozen=True)
class Secrets:
    """The context for writing and reading a spec: references to secrets by name, and a function that reads a secret."""

    references: Mapping[str, str]
    look_up: Callable[[str], str]


def _reference(name: str, secret: str, info: SerializationInfo[Secrets]) -> dict[str, str | None]:
    return {"secret": info.context.references.get(name)} if secret else {}


def _look_up(name: str, value: object, info: ValidationInfo[Secrets]) -> str:
    match value:
        case {} if not value:
            return ""
        case {"secret": None}:
            raise ValueError(
                f"there is no reference to the secret {name!r}; store it in Secrets Manager, and name it in "
                "the resource that starts jobs"
            )
        case {"secret": str(reference)}:
            return info.context.look_up(reference)
    raise ValueError('this is not a reference to a secret; write it as {"secret": "<name>"}')


def _without_secrets(settings: Mapping[str, str]) -> Mapping[str, str]:
    for name in settings:
        if _SECRET_SETTING.search(name):
            raise ValueError(f"{name!r} may hold a secret; set it in the settings of the cluster")
    return settings


RoleKey = Annotated[str | None, PlainSerializer(lambda _: None)]
"""Written as null: the job takes credentials from its role or its environment."""

SourcePassword = Annotated[
    str, PlainSerializer(partial(_reference, SOURCE_PASSWORD)), PlainValidator(partial(_look_up, SOURCE_PASSWORD))
]
"""Written as a reference to the secret; an empty password is written as {}."""

RegistryAuthorization = Annotated[
    str,
    PlainSerializer(partial(_reference, REGISTRY_AUTHORIZATION)),
    PlainValidator(partial(_look_up, REGISTRY_AUTHORIZATION)),
]
"""Written like SourcePassword."""

HashSalt = Annotated[str, PlainSerializer(partial(_reference, HASH_SALT)), PlainValidator(partial(_look_up, HASH_SALT))]
"""Written like SourcePassword."""

OpenSettings = Annotated[Mapping[str, str], AfterValidator(_without_secrets)]
"""Settings that are written in plain text; a setting whose name suggests a secret is rejected."""
