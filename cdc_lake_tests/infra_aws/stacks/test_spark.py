"""EMR: Glue as the metastore, the release of the size, the cluster."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import infra.aws
from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import text
from infra.aws.stacks.spark import GLUE_FACTORY

BOOTSTRAP = Path(str(infra.aws.__file__)).parent / "bootstrap" / "python.sh"


def test_the_application_has_the_limits_of_the_size_and_no_initial_capacity(environment: Synthesized) -> None:
    application, emr = environment.one("spark", "AWS::EMRServerless::Application"), environment.size.emr
    assert application["ReleaseLabel"] == emr.release
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": emr.idle_minutes}
    assert "InitialCapacity" not in application
    assert application["MaximumCapacity"]["Cpu"] == f"{emr.serverless_max_vcpu} vCPU"
    [settings] = application["RuntimeConfiguration"]
    assert settings["Properties"]["spark.hadoop.hive.metastore.client.factory.class"] == GLUE_FACTORY


def test_the_cluster_uses_glue_and_emr_managed_security_groups(production: Synthesized) -> None:
    cluster, shape = production.one("spark", "AWS::EMR::Cluster"), production.size.emr.cluster
    assert shape is not None
    assert cluster["ReleaseLabel"] == production.size.emr.release
    [hive] = [each for each in cluster["Configurations"] if each["Classification"] == "spark-hive-site"]
    assert hive["ConfigurationProperties"]["hive.metastore.client.factory.class"] == GLUE_FACTORY
    instances = cluster["Instances"]
    assert instances["CoreInstanceGroup"]["InstanceCount"] == shape.core_count
    assert instances["TerminationProtected"] is True
    groups = ("EmrManagedMasterSecurityGroup", "EmrManagedSlaveSecurityGroup", "ServiceAccessSecurityGroup")
    assert len({str(instances[group]) for group in groups}) == 3
    assert instances["AdditionalMasterSecurityGroups"] == instances["AdditionalSlaveSecurityGroups"]
    assert {"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"} in cluster["Tags"]


def test_machines_start_after_the_roles_have_their_policies(production: Synthesized) -> None:
    resources = production.templates["spark"]["Resources"]
    [cluster] = [each for each in resources.values() if each["Type"] == "AWS::EMR::Cluster"]
    depends = {resources[name]["Type"] for name in cluster["DependsOn"]}
    roles = {reference["Ref"] for name in cluster["DependsOn"] for reference in resources[name]["Properties"]["Roles"]}
    assert depends == {"AWS::IAM::Policy"}
    assert len(roles) == 2
    assert cluster["Properties"]["ServiceRole"]["Fn::GetAtt"][0] in roles


def test_the_users_script_installs_python(production: Synthesized, opposite_of_dev: Synthesized) -> None:
    assert not production.one("spark", "AWS::EMR::Cluster").get("BootstrapActions")
    [action] = opposite_of_dev.one("spark", "AWS::EMR::Cluster")["BootstrapActions"]
    script = action["ScriptBootstrapAction"]
    assert text(script["Path"]).endswith("/python/install.sh")
    assert [text(each).rpartition("}")[2] for each in script["Args"]] == ["/python/requirements.lock"]


def test_our_script_creates_the_interpreter_of_the_steps(production: Synthesized) -> None:
    script = BOOTSTRAP.read_text(encoding="utf-8")
    assert production.size.emr.cluster is not None
    [folder] = re.findall(r"^folder=(\S+)$", script, re.MULTILINE)
    assert production.size.emr.cluster.python == f"{folder}/bin/python"
    subprocess.run(["bash", "-n", str(BOOTSTRAP)], check=True)
    without = subprocess.run(["bash", str(BOOTSTRAP)], capture_output=True, text=True, check=False)
    assert without.returncode != 0
    assert "the URI of requirements.lock is missing" in without.stderr


def test_dev_has_no_cluster(dev: Synthesized) -> None:
    assert dev.size.emr.cluster is None
    assert dev.of("spark", "AWS::EMR::Cluster") == {}


def test_the_cluster_requires_metadata_service_version_2(production: Synthesized) -> None:
    security = production.one("spark", "AWS::EMR::SecurityConfiguration")["SecurityConfiguration"]
    assert security["InstanceMetadataServiceConfiguration"]["MinimumInstanceMetadataServiceVersion"] == 2


def test_jobs_may_read_the_sources_secret_only_if_they_verify(dev: Synthesized, opposite_of_dev: Synthesized) -> None:
    assert "ExportsOutputRefReplication" in str(dev.of("spark", "AWS::IAM::Policy"))
    assert "ExportsOutputRefReplication" not in str(opposite_of_dev.of("spark", "AWS::IAM::Policy"))
