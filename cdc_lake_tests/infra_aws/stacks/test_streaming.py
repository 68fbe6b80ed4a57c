"""MSK: IAM as the only authentication, brokers and their configuration, MSK Serverless."""

from __future__ import annotations

from cdc_lake_tests.infra_aws.conftest import Synthesized
from infra.aws.sizes.size_models import Kafka
from infra.aws.stacks.streaming import broker_properties


def properties(kafka: Kafka) -> dict[str, str]:
    return dict(line.split("=", 1) for line in broker_properties(kafka).splitlines())


def test_iam_is_the_only_authentication(environment: Synthesized) -> None:
    cluster = environment.one("streaming", "AWS::MSK::Cluster")
    assert cluster["ClientAuthentication"] == {
        "Sasl": {"Iam": {"Enabled": True}},
        "Unauthenticated": {"Enabled": False},
    }
    assert cluster["EncryptionInfo"]["EncryptionInTransit"] == {"ClientBroker": "TLS", "InCluster": True}
    assert "ConnectivityInfo" not in cluster["BrokerNodeGroupInfo"], "the cluster has public access"


def test_the_brokers_are_those_of_the_size(environment: Synthesized) -> None:
    kafka, cluster = environment.size.kafka, environment.one("streaming", "AWS::MSK::Cluster")
    nodes = cluster["BrokerNodeGroupInfo"]
    assert cluster["NumberOfBrokerNodes"] == kafka.brokers
    assert nodes["InstanceType"] == kafka.broker_type
    assert not nodes["InstanceType"].startswith("kafka.t3.")
    assert len(nodes["ClientSubnets"]) == 2
    assert len(nodes["SecurityGroups"]) == 1
    configuration = environment.one("streaming", "AWS::MSK::Configuration")
    assert configuration["ServerProperties"] == broker_properties(kafka)


def test_dev_has_two_brokers_and_production_four(dev: Synthesized, production: Synthesized) -> None:
    assert [each.one("streaming", "AWS::MSK::Cluster")["NumberOfBrokerNodes"] for each in (dev, production)] == [2, 4]


def test_topics_are_created_automatically_by_default() -> None:
    kafka = Kafka(kind="provisioned")
    assert properties(kafka)["auto.create.topics.enable"] == "true"
    off = kafka.model_copy(update={"auto_create_topics": False})
    assert properties(off)["auto.create.topics.enable"] == "false"


def test_replication_factors_depend_on_the_number_of_brokers() -> None:
    two, four = Kafka(kind="provisioned"), Kafka(kind="provisioned", brokers=4, min_insync_replicas=2)
    names = ("default.replication.factor", "min.insync.replicas", "transaction.state.log.min.isr")
    assert [properties(two)[name] for name in names] == ["2", "1", "1"]
    assert [properties(four)[name] for name in names] == ["3", "2", "2"]


def test_msk_serverless_can_be_chosen(opposite_of_dev: Synthesized) -> None:
    assert opposite_of_dev.of("streaming", "AWS::MSK::Cluster") == {}
    cluster = opposite_of_dev.one("streaming", "AWS::MSK::ServerlessCluster")
    assert cluster["ClientAuthentication"] == {"Sasl": {"Iam": {"Enabled": True}}}
    assert len(cluster["VpcConfigs"][0]["SubnetIds"]) == 2
