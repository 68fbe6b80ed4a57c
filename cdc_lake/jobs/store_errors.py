"""Convert errors of Hadoop's S3A, through which Spark and Hudi use the object store, to the contract's errors."""

from __future__ import annotations

import re

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError

# The classes into which S3A translates the AWS SDK's exceptions, and their messages
# (https://hadoop.apache.org/docs/r3.3.4/hadoop-aws/tools/hadoop-aws/troubleshooting_s3a.html).
_SAID = re.compile(
    r"(?:org\.apache\.hadoop\.fs\.s3a\.(?:auth\.|impl\.)?|java\.nio\.file\.)"
    r"(?P<kind>AWS\w+Exception|AccessDeniedException|NoAuthWithAWSException|NoAwsCredentialsException"
    r"|CredentialInitializationException|UnknownStoreException): (?P<said>[^\n]+)"
)
# The client had no answer; all other errors come from the store or from the credentials provider.
_NO_ANSWER = {"AWSClientIOException", "AWSNoResponseException", "AWSApiCallTimeoutException"}


def store_error(text: str) -> ContractError | None:
    """Return the store's error in a Java stack trace, first or as a cause; None for another error."""
    match = _SAID.search(text)
    if match is None:
        return None
    said = f"({match['said'].strip()}). What was committed before stays, nothing is committed twice"
    if match["kind"] in _NO_ANSWER:
        return StoreUnreachableError(
            f"the object store did not answer Spark {said}: `cdc-lake status` shows whether a local store runs and "
            "`cdc-lake up` starts it, else check the network and the endpoint; then run this again"
        )
    return StoreRefusedError(
        f"the object store refused Spark {said}: look at the store (`cdc-lake logs s3`, if it is the local one), at "
        "the credentials and at what they allow; then run this again"
    )
