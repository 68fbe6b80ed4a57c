"""Glue, Athena, and what QuickSight may read."""

from __future__ import annotations

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.statements import statements, text


def test_the_workgroup_decides_where_results_go_and_how_much_is_scanned(environment: Synthesized) -> None:
    group = environment.one("catalog", "AWS::Athena::WorkGroup")["WorkGroupConfiguration"]
    assert group["EnforceWorkGroupConfiguration"] is True
    assert group["BytesScannedCutoffPerQuery"] == environment.size.athena.scan_limit_gib * 1024**3
    assert group["EngineVersion"]["SelectedEngineVersion"] == "Athena engine version 3"
    results = group["ResultConfiguration"]
    assert results["EncryptionConfiguration"]["EncryptionOption"] == "SSE_S3"
    assert text(results["OutputLocation"]).endswith("/athena-results/")


def test_the_database_lies_in_the_lakes_bucket(environment: Synthesized) -> None:
    database = environment.one("catalog", "AWS::Glue::Database")["DatabaseInput"]
    [lake] = [b for name, b in environment.of("storage", "AWS::S3::Bucket").items() if name.startswith("Lake")]
    assert database["Name"] == environment.size.catalog
    assert text(database["LocationUri"]) == f"s3://{text(lake['BucketName'])}/lake/"


def test_quicksight_reads_the_lake_and_writes_results_only(environment: Synthesized) -> None:
    own = [each for each in statements(environment) if each.where.startswith("quicksight/DataSource")]
    written = [r for each in own if "s3:PutObject" in each.actions for r in each.resources]
    read = [r for each in own if "s3:GetObject" in each.actions for r in each.resources]
    assert [resource.rpartition("/")[0].rpartition("/")[2] for resource in written] == ["athena-results"]
    assert sorted(resource.rpartition("/")[0].rpartition("/")[2] for resource in read) == ["athena-results", "lake"]


def test_dagster_touches_its_own_objects_in_quicksight_only(environment: Synthesized) -> None:
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
