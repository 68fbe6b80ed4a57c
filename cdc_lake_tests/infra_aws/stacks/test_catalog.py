"""Glue, Athena, and QuickSight's permissions."""

from __future__ import annotations

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import statements, text


def test_the_workgroup_has_a_result_location_and_a_scan_limit(environment: Synthesized) -> None:
    group = environment.one("catalog", "AWS::Athena::WorkGroup")["WorkGroupConfiguration"]
    assert group["EnforceWorkGroupConfiguration"] is False, "refined tables have external locations"
    assert group["BytesScannedCutoffPerQuery"] == environment.size.athena.scan_limit_gib * 1024**3
    assert group["EngineVersion"]["SelectedEngineVersion"] == "Athena engine version 3"
    results = group["ResultConfiguration"]
    assert results["EncryptionConfiguration"]["EncryptionOption"] == "SSE_S3"
    assert text(results["OutputLocation"]).endswith("/athena-results/")


def test_every_glue_database_is_in_the_lakes_bucket(environment: Synthesized, opposite_of_dev: Synthesized) -> None:
    for each in (environment, opposite_of_dev):
        databases = [found["DatabaseInput"] for found in each.of("catalog", "AWS::Glue::Database").values()]
        [lake] = [b for name, b in each.of("storage", "AWS::S3::Bucket").items() if name.startswith("Lake")]
        assert sorted(database["Name"] for database in databases) == sorted(each.size.glue_databases)
        assert {text(database["LocationUri"]) for database in databases} == {f"s3://{text(lake['BucketName'])}/lake/"}


def test_adding_a_database_does_not_replace_the_first(dev: Synthesized, opposite_of_dev: Synthesized) -> None:
    [first] = dev.of("catalog", "AWS::Glue::Database")
    found = opposite_of_dev.of("catalog", "AWS::Glue::Database")
    assert len(found) == 3
    assert found[first]["DatabaseInput"]["Name"] == opposite_of_dev.size.glue_databases[0] == dev.size.glue_databases[0]


def test_athenas_default_database_is_the_first(opposite_of_dev: Synthesized) -> None:
    assert (
        opposite_of_dev.templates["catalog"]["Outputs"]["GlueDatabase"]["Value"]
        == opposite_of_dev.size.glue_databases[0]
    )


def test_databases_are_kept_with_the_data(production: Synthesized, opposite_of_dev: Synthesized) -> None:
    policies = {
        each.size.name: {
            resource["DeletionPolicy"]
            for resource in each.templates["catalog"]["Resources"].values()
            if resource["Type"] == "AWS::Glue::Database"
        }
        for each in (production, opposite_of_dev)
    }
    assert policies == {"production": {"Retain"}, "variant": {"Delete"}}


def test_quicksight_reads_the_lake_and_writes_results_only(environment: Synthesized) -> None:
    own = [each for each in statements(environment) if each.where.startswith("quicksight/DataSource")]
    written = [r for each in own if "s3:PutObject" in each.actions for r in each.resources]
    read = [r for each in own if "s3:GetObject" in each.actions for r in each.resources]
    assert [resource.rpartition("/")[0].rpartition("/")[2] for resource in written] == ["athena-results"]
    assert sorted(resource.rpartition("/")[0].rpartition("/")[2] for resource in read) == ["athena-results", "lake"]


def test_dagster_may_change_its_own_quicksight_objects_only(environment: Synthesized) -> None:
    resources = [
        resource
        for each in statements(environment)
        if each.where.startswith("quicksight/Authoring")
        for resource in each.resources
        if ":quicksight:" in resource
    ]
    assert {resource.rpartition(":")[2] for resource in resources} == {
        "analysis/cdc-lake-*",
        "dashboard/cdc-lake-*",
        "dataset/cdc-lake-*",
        "datasource/cdc-lake-*",
    }
