"""Links to the AWS console."""

from __future__ import annotations

import pytest

from resources.aws import console_links


@pytest.mark.parametrize(
    ("region", "domain"),
    [
        ("eu-central-1", "aws.amazon.com"),
        ("cn-north-1", "amazonaws.cn"),
        ("us-gov-west-1", "amazonaws-us-gov.com"),
    ],
)
def test_each_aws_partition_has_its_own_domain(region: str, domain: str) -> None:
    assert console_links.emr_cluster(region, "j-1") == (
        f"https://console.{domain}/emr/home?region={region}#/clusterDetails/j-1"
    )
    assert console_links.emr_serverless(region).startswith(f"https://console.{domain}/emr/home?region={region}#/")


def test_only_an_s3_folder_has_a_link() -> None:
    found = console_links.objects("us-east-1", "s3://work/emr-logs/a run/")
    assert found == "https://console.aws.amazon.com/s3/buckets/work?region=us-east-1&prefix=emr-logs/a%20run/"
    assert console_links.objects("us-east-1", "the cluster's primary machine, /mnt/var/log/steps/s-1/") == ""
