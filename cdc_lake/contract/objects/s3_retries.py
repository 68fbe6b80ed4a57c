"""Timeouts and retries of the object store's requests to S3, by boto3.

Those of Spark are in jobs/spark.properties (fs.s3a.*), those of Dagster's resources in resources/aws/aws_resource.py.
"""

from botocore.config import Config
from botocore.exceptions import IncompleteReadError, ReadTimeoutError, ResponseStreamingError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

# boto3 retries a request that gets no response, but not a response that ends or stalls in the middle of an object.
RETRY_BODY = Retrying(
    retry=retry_if_exception_type((IncompleteReadError, ResponseStreamingError, ReadTimeoutError)),
    stop=stop_after_attempt(4),
    wait=wait_exponential(multiplier=0.2, max=2),
    reraise=True,
)


def client_config(*, path_style: bool) -> Config:
    """Return the settings of a client: six attempts, 5 s to connect and 20 s to read."""
    return Config(
        retries={"mode": "standard", "max_attempts": 5},
        connect_timeout=5,
        read_timeout=20,
        s3={"addressing_style": "path"} if path_style else {},
    )
