"""How much of what an environment has: standing there (idle), and at its assumed work.

Here: a line a priced thing. Not here: prices (prices.yaml), assumptions (workloads.yaml), the page (costs.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infra.aws.prices import Workload
from infra.aws.size_parts import ZONES
from infra.aws.sizes import Size

HOURS = 730
"""A month."""
_ENDPOINTS = 3
_SECRETS = 3
_SERVICES = 3
_ALARMS_EACH, _ALARMS = 4, 3
"""Alarms of a pipeline, and those of the environment."""
_METRICS_EACH = 2
_PUTS_EACH = 120
"""Requests an hour of a pipeline's watch, which puts both metrics in one (cdc_lake/pipeline/watch.py)."""
_READERS = 2


@dataclass(frozen=True)
class Line:
    """A priced thing: how much of it a month while idle, and at work."""

    part: str
    price: str
    idle: float
    work: float


def lines(size: Size, work: Workload) -> Iterator[Line]:
    """Everything that is charged for. `work` includes what stands there anyway."""
    yield from _network(size, work)
    yield from _database(size, work)
    yield from _kafka(size, work)
    yield from _spark(size, work)
    yield from _dagster(size)
    yield from _rest(size, work)


def _standing(part: str, price: str, amount: float) -> Line:
    return Line(part, price, amount, amount)


def _network(size: Size, work: Workload) -> Iterator[Line]:
    gateways = size.network.nat_gateways * HOURS
    yield _standing("network", "nat_gateway_hour", gateways)
    yield _standing("network", "public_address_hour", gateways)
    yield Line("network", "nat_gateway_gb", 0, work.nat_gb)
    yield _standing("network", "interface_endpoint_hour", _ENDPOINTS * ZONES * HOURS)
    yield _standing("private access", "ec2_t4g_nano_hour", HOURS)
    yield _standing("private access", "ebs_gp3_gb_month", 8)


def _database(size: Size, work: Workload) -> Iterator[Line]:
    instances = size.database.instances * HOURS
    low, high = size.database.min_capacity, max(size.database.min_capacity, work.acu)
    yield Line("Aurora", "aurora_acu_hour", low * instances, high * instances)
    yield _standing("Aurora", "aurora_storage_gb_month", work.aurora_gb)
    yield Line("Aurora", "aurora_io_million", 0, work.aurora_io_million)


def _kafka(size: Size, work: Workload) -> Iterator[Line]:
    kafka = size.kafka
    if kafka.kind == "serverless":
        yield _standing("MSK", "msk_serverless_cluster_hour", HOURS)
        yield _standing("MSK", "msk_serverless_partition_hour", work.partitions * HOURS)
        yield Line("MSK", "msk_serverless_in_gb", 0, work.changes_gb)
        yield Line("MSK", "msk_serverless_out_gb", 0, work.changes_gb * _READERS)
    else:
        name = kafka.broker_type.removeprefix("kafka.").replace(".", "_")
        yield _standing("MSK", f"msk_{name}_hour", kafka.brokers * HOURS)
        yield _standing("MSK", "msk_storage_gb_month", kafka.brokers * kafka.storage_gib)
    mcus = size.connect.workers * size.connect.mcus * len(size.pipelines)
    yield _standing("MSK Connect", "msk_connect_mcu_hour", mcus * HOURS)


def _spark(size: Size, work: Workload) -> Iterator[Line]:
    yield Line("EMR Serverless", "emr_serverless_arm_vcpu_hour", 0, work.spark_vcpu_hours)
    yield Line("EMR Serverless", "emr_serverless_arm_gb_hour", 0, work.spark_gb_hours)
    cluster = size.emr.cluster
    if cluster is None:
        return
    primary, core = cluster.primary_type.replace(".", "_"), cluster.core_type.replace(".", "_")
    for seller in ("ec2", "emr"):
        yield _standing("EMR cluster", f"{seller}_{primary}_hour", HOURS)
        standing = cluster.core_count * HOURS
        yield Line("EMR cluster", f"{seller}_{core}_hour", standing, standing + work.extra_core_hours)


def _dagster(size: Size) -> Iterator[Line]:
    dagster = size.dagster
    zones = ZONES if dagster.storage_multi_az else 1
    yield _standing("Dagster", "fargate_vcpu_hour", _SERVICES * dagster.cpu / 1024 * HOURS)
    yield _standing("Dagster", "fargate_gb_hour", _SERVICES * dagster.memory_mib / 1024 * HOURS)
    yield _standing("Dagster", f"rds_{dagster.storage_class.replace('.', '_')}_hour", zones * HOURS)
    yield _standing("Dagster", "rds_gp3_gb_month", zones * dagster.storage_gib)
    yield _standing("Dagster", "private_zone_month", 1)


def _rest(size: Size, work: Workload) -> Iterator[Line]:
    pipelines = len(size.pipelines)
    yield _standing("S3", "s3_standard_gb_month", work.lake_gb)
    yield Line("S3", "s3_put_thousand", 0, work.puts_thousand)
    yield Line("S3", "s3_get_thousand", 0, work.gets_thousand)
    yield Line("SQS", "sqs_million", 0, work.puts_thousand / 1000)
    yield Line("Athena", "athena_tb", 0, work.athena_tb)
    yield _standing("secrets", "secret_month", _SECRETS)
    yield _standing("alarms and logs", "alarm_month", _ALARMS + _ALARMS_EACH * pipelines)
    yield _standing("alarms and logs", "custom_metric_month", _METRICS_EACH * pipelines)
    yield _standing("alarms and logs", "metric_put_thousand", _PUTS_EACH * pipelines * HOURS / 1000)
    yield Line("alarms and logs", "logs_in_gb", 0, work.logs_gb)
    yield _standing("QuickSight", "quicksight_author_month", work.authors)
