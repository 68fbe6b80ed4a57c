"""Translates boto3's errors to ResourceErrors, with the operation, the object, the cause and what to do."""

from __future__ import annotations

from boto3.exceptions import Boto3Error
from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from resources.errors import AccessRefused, ResourceError, Unreachable

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
REFUSED = frozenset(
    {
        "403",  # S3's response to HEAD has no body and so no error code
        "AccessDenied",
        "AccessDeniedException",
        "Forbidden",
        "ForbiddenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnauthorizedException",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_SILENT = (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError)
_WITHOUT_IDENTITY = (
    boto.CredentialRetrievalError,
    boto.LoginError,
    boto.NoAuthTokenError,
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.ProfileNotFound,
    boto.SSOError,
    boto.TokenRetrievalError,
)


class AwsRequestFailed(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """An AWS service rejected a request."""

    def __init__(self, message: str, code: str, aws_message: str, hint: str = "") -> None:
        """`code` and `aws_message` are AWS's own error code and message."""
        super().__init__(message, hint)
        self.code = code
        self.aws_message = aws_message


def translated(
    error: ClientError | Boto3Error | BotoCoreError, action: str, place: str, *, attempts: int, hint: str
) -> ResourceError:
    """Return the ResourceError for an error of boto3.

    Args:
        error: the error that boto3 raised.
        action: the operation and its object; it completes "Cannot …" in the message.
        place: the endpoint, or the region.
        attempts: how often the call was tried.
        hint: what to do if the endpoint does not answer.
    """
    # The error of a large object's transfer (Boto3Error) wraps the error that S3 returned.
    cause = error.__context__ if isinstance(error, Boto3Error) else error
    if isinstance(cause, ClientError):
        return _refusal(cause, f"Cannot {action}: {place} returned", attempts)
    if isinstance(error, boto.NoCredentialsError):
        message = f"Cannot {action}: there are no AWS credentials."
        return AccessRefused(message, "Set AWS_PROFILE, or configure access keys.")
    if isinstance(error, _WITHOUT_IDENTITY):
        message = f"Cannot {action}: boto3 cannot get AWS credentials ({error})."
        return AccessRefused(message, "Sign in again (`aws sso login`), or set AWS_PROFILE.")
    if isinstance(error, _SILENT):
        return Unreachable(f"Cannot {action}: {place} does not answer ({error}).", hint)
    text = " ".join(str(error).split())
    return AwsRequestFailed(f"Cannot {action} at {place}: {text.rstrip('. ')}.", type(error).__name__, text)


def _refusal(error: ClientError, returned: str, attempts: int) -> ResourceError:
    code = error.response.get("Error", {}).get("Code", "")
    text = error.response.get("Error", {}).get("Message", "") or str(error)
    message = f"{returned} {code}: {text.rstrip('. ')}."
    if code in EXPIRED:
        return AccessRefused(message, "The credentials have expired. Get new ones, then run this again.")
    if code in REFUSED:
        return AccessRefused(message, "Check the credentials and their permissions (infra/aws has the policies).")
    advice = f"AWS throttled all {attempts} attempts. Run this again later, or raise the resource's `attempts`."
    return AwsRequestFailed(message, code, text, advice if code in THROTTLED else "")
