"""Read the secrets that a spec refers to from AWS Secrets Manager, with the job's IAM role."""

from __future__ import annotations

import json
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cdc_lake.contract.errors import SecretUnreadableError

_PASSWORD = "password"  # noqa: S105 - the member's name in a secret of RDS


def password(reference: str) -> str:
    """Return the password under an ARN or name: the secret's text, or `password` if the secret is a JSON object.

    RDS and Aurora write such objects (https://docs.aws.amazon.com/secretsmanager/latest/userguide/
    reference_secret_json_structure.html). Raises SecretUnreadableError.
    """
    parts = reference.split(":")
    region = parts[3] if len(parts) > 3 else None
    try:
        client = boto3.client("secretsmanager", region_name=region, config=Config(retries={"mode": "standard"}))
        text: str = client.get_secret_value(SecretId=reference)["SecretString"]
    except (ClientError, BotoCoreError, KeyError) as error:
        cause = " ".join(str(error).split())
        raise SecretUnreadableError(
            f"Cannot read secret {reference} ({cause}). Nothing was changed. The job's role needs "
            "secretsmanager:GetSecretValue for it, the job needs network access to Secrets Manager, and the secret "
            "must be a text, not binary."
        ) from error
    return _member(reference, text)


def _member(reference: str, text: str) -> str:
    try:
        found: Any = json.loads(text)
    except ValueError:
        return text
    if not isinstance(found, dict):
        return text
    if not isinstance(found.get(_PASSWORD), str):
        raise SecretUnreadableError(
            f"Cannot read secret {reference}: it is a JSON object without a text under {_PASSWORD!r}. Store the value "
            f"under {_PASSWORD!r}, or as plain text."
        )
    return str(found[_PASSWORD])
