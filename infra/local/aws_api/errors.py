"""Errors of the local AWS API: a code, a message and an HTTP status, as JSON or XML.

Operations that moto executes raise moto's errors.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from xml.sax.saxutils import escape

log = logging.getLogger(__name__)

JSON = "application/x-amz-json-1.1"
XML = "text/xml"


class AwsError(Exception):
    """An error that the API's caller receives: code, message and, if the service has them, more members."""

    def __init__(self, code: str, message: str, status: int = 400, **members: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.members = members

    def as_json(self) -> str:
        """Return the body for services of the JSON protocols (Glue, Athena)."""
        return json.dumps({"__type": self.code, "Message": self.message, **self.members})

    def as_xml(self) -> str:
        """Return the body for services of the query and XML protocols (STS, S3)."""
        return (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{escape(self.code)}</Code>"
            f"<Message>{escape(self.message)}</Message></Error></ErrorResponse>"
        )


def unknown_operation(service: str, operation: str, offered: Collection[str]) -> AwsError:
    """Log that an operation was rejected, and return the error for its caller."""
    log.info("Rejected the unknown operation %s:%s.", service, operation)
    return AwsError(
        "UnknownOperationException",
        f"The local AWS API does not have the operation {service}:{operation}. Of {service} it has"
        f" {', '.join(sorted(offered))}.",
    )
