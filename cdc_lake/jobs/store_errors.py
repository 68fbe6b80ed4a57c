"""Convert errors of Hadoop's S3A, through which Spark and Hudi use the object store, to the contract's errors."""

from __future__ import annotations

import re

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError

# The classes into which S3A translates the AWS SDK's exceptions, and their messages
# (https://hadoop.apache.org/docs/r3.3.4/hadoop-aws/tools/hadoop-aws/troubleshooting_s3a.html).
_S3A_ERROR = re.compile(
    r"(?:org\.apache\.hadoop\.fs\.s3a\.(?:auth\.|impl\.)?|java\.nio\.file\.)"
    r"(?P<kind>AWS\w+Exception|AccessDeniedException|NoAuthWithAWSException|NoAwsCredentialsException"
    r"|CredentialInitializationException|UnknownStoreException): (?P<message>[^\n]+)"
)
# The client had no answer; all other errors come from the store or from the credentials provider.
_NO_ANSWER = {"AWSClientIOException", "AWSNoResponseException", "AWSApiCallTimeoutException"}


def store_error(text: str) -> ContractError | None:
    """Return the store's error in a Java stack trace, first or as a cause; None for another error."""
    match = _S3A_ERROR.search(text)
    if match is None:
        return None
    cause = f"({match['message'].strip()}). Earlier commits stay, nothing is committed twice"
    if match["kind"] in _NO_ANSWER:
        return StoreUnreachableError(
            f"the object store did not answer Spark {cause}. `cdc-lake status` shows whether a local store runs, "
            "`cdc-lake up` starts it; for another store, check the network and the endpoint. Then run this again."
        )
    return StoreRefusedError(
        f"the object store rejected a request of Spark {cause}. Check the store (`cdc-lake logs s3` shows the local "
        "store's log), the credentials and their permissions. Then run this again."
    )
