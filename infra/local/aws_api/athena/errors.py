"""Athena's errors."""

from __future__ import annotations

from infra.local.aws_api.errors import AwsError


def invalid_request(message: str, athena_code: str = "INVALID_INPUT") -> AwsError:
    """Return an InvalidRequestException with its AthenaErrorCode."""
    return AwsError("InvalidRequestException", message, AthenaErrorCode=athena_code)
