"""Which statements the local Athena runs, and the kinds that it reports for them."""

from __future__ import annotations

import pytest

from infra.local.aws_api.athena.statements import classify
from infra.local.aws_api.errors import AwsError


@pytest.mark.parametrize(
    ("sql", "kind", "form"),
    [
        ("select 1", "DML", "SELECT"),
        ("-- why\n/* and */ WITH a AS (SELECT 1) SELECT * FROM a;", "DML", "SELECT"),
        ("(SELECT 1) UNION (SELECT 2)", "DML", "SELECT"),
        ("insert into t select 1", "DML", "INSERT"),
        ("create table t with (format='PARQUET') as select 1 x", "DDL", "CREATE_TABLE_AS_SELECT"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 x", "DDL", "CREATE_VIEW"),
        ("drop view v", "DDL", "DROP_VIEW"),
        ("show tables", "UTILITY", "SHOW"),
        ("describe t", "UTILITY", "DESCRIBE_TABLE"),
    ],
)
def test_statements_are_classified(sql: str, kind: str, form: str) -> None:
    statement = classify(sql)

    assert (statement.kind, statement.form) == (kind, form)
    assert not statement.sql.endswith(";")
    assert statement.has_header == (form == "SELECT")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "empty"),
        ("-- nothing", "empty"),
        ("CALL system.runtime.kill_query('x')", "mismatched input 'CALL'"),
        ("SET SESSION a = 1", "mismatched input 'SET'"),
        ("SHOW CATALOGS", "mismatched input 'SHOW'"),
        ("SELECT * FROM hudi.datalake.orders", "Catalog 'hudi' does not exist"),
        ("CREATE VIEW v AS SELECT * FROM system.runtime.nodes", "Catalog 'system' does not exist"),
    ],
)
def test_statements_that_athena_does_not_support_are_rejected(sql: str, message: str) -> None:
    with pytest.raises(AwsError) as refused:
        classify(sql)

    assert refused.value.code == "InvalidRequestException"
    assert message in refused.value.message


def test_athenas_catalog_name_is_accepted() -> None:
    assert classify('SELECT * FROM "AwsDataCatalog"."datalake"."orders"').form == "SELECT"
