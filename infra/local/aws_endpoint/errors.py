"""Errors as AWS answers them: a code, a message, and the HTTP status that goes with the code.

Here: the exceptions of this package's own operations and their two wire forms.
Not here: the errors that moto raises in the operations that are left to it.
"""

from __future__ import annotations

import json
import logging
from xml.sax.saxutils import escape

log = logging.getLogger(__name__)

JSON = "application/x-amz-json-1.1"
XML = "text/xml"


class AwsError(Exception):
    """An error that the caller of the API is told: code, message and, if the service has them, more members."""

    def __init__(self, code: str, message: str, status: int = 400, **members: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.members = members

    def as_json(self) -> str:
        """The body that services of the JSON protocols (Glue, Athena) send."""
        return json.dumps({"__type": self.code, "Message": self.message, **self.members})

    def as_xml(self) -> str:
        """The body that services of the query and XML protocols (STS, S3) send."""
        return (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{escape(self.code)}</Code>"
            f"<Message>{escape(self.message)}</Message></Error></ErrorResponse>"
        )


def unknown_operation(service: str, action: str, offered: frozenset[str]) -> AwsError:
    """The error for an operation that AWS may have and this endpoint has not; noted in the log."""
    log.info("Refused %s:%s.", service, action)
    return AwsError(
        "UnknownOperationException",
        f"{service}:{action} is not offered by the local AWS endpoint. Of {service} it offers "
        f"{', '.join(sorted(offered))}.",
    )


def invalid_request(message: str, athena_code: str = "INVALID_INPUT") -> AwsError:
    """Athena's InvalidRequestException with its AthenaErrorCode."""
    return AwsError("InvalidRequestException", message, AthenaErrorCode=athena_code)
