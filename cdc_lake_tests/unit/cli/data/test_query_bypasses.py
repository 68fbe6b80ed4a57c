"""Changing statements in disguise: `cdc-lake query` rejects them without --write.

Athena runs an accepted text as one statement and decides by its first word. Therefore only a single statement that
begins like a query is accepted.
"""

from __future__ import annotations

import pytest

from cdc_lake.cli.data.query import read_only_fault
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

CHANGING = [
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a",
    "SELECT 1; DROP TABLE t",
    "SELECT 1;\n--x\nDROP TABLE t",
    "/* SELECT */ DROP TABLE t",
    "-- SELECT\nDROP TABLE t",
    "/* /* */ INSERT INTO t SELECT 1 /* */",
    "EXPLAIN ANALYZE INSERT INTO t SELECT 1",
    "EXPLAIN /* x */ ANALYZE /* y */ VERBOSE /* z */ INSERT INTO t SELECT 1",
    "EXPLAIN--x\nANALYZE--y\nDELETE FROM t",
    "explain analyze verbose create table x as select 1",
    "EXPLAIN ANALYZE (INSERT INTO t SELECT 1)",
    "CALL system.create_empty_partition('a','b')",
    "SET SESSION query_max_run_time='1h'",
    "RESET SESSION x",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE EXTERNAL TABLE t (a int) LOCATION 's3://x/'",
    "UNLOAD (SELECT 1) TO 's3://x/' WITH (format='PARQUET')",
    "MSCK REPAIR TABLE t",
    "ALTER TABLE t ADD COLUMN a int",
    "PREPARE p FROM INSERT INTO t SELECT 1",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'DROP TABLE t'",
    "DEALLOCATE PREPARE p",
    "GRANT SELECT ON t TO u",
    "ANALYZE t",
    "COMMENT ON TABLE t IS 'x'",
    "REFRESH MATERIALIZED VIEW v",
    "TRUNCATE TABLE t",
    "MERGE INTO t USING s ON t.a=s.a WHEN MATCHED THEN DELETE",
    "UPDATE t SET a=1",
    "DELETE FROM t",
    "VACUUM t",
    "OPTIMIZE t REWRITE DATA USING BIN_PACK",
    "START TRANSACTION",
    "USE x",
    "FROM t INSERT INTO u SELECT *",
    "SELECT * INTO u FROM t",
    "\ufeffINSERT INTO t SELECT 1",
    "\xa0DROP TABLE t",
    "DROP TABLE t /* SELECT */",
    "(DROP TABLE t)",
    "((INSERT INTO t SELECT 1))",
    "WITH FUNCTION f() RETURNS int RETURN 1 INSERT INTO t SELECT f()",
    "EXPLAIN ANALYZE\nEXPLAIN ANALYZE DELETE FROM t",
    "DESCRIBE t; DROP TABLE t",
    "SHOW TABLES; DROP TABLE t",
    "DESC t;DELETE FROM t",
    "SHOW CREATE TABLE t; DROP TABLE t",
    "EXPLAIN SELECT 1; DROP TABLE t",
    "DENY SELECT ON t TO u",
    "REVOKE ALL ON t FROM u",
    "KILL 1",
    "SET ROLE admin",
    "SET PATH x",
    "SET TIME ZONE LOCAL",
    "COMMIT",
    "ROLLBACK",
    "DROP TABLE `t`",
    "SELECT 'a\\'; DROP TABLE t --'",
    "INSERT/**/INTO t VALUES 1",
    "inSert\tinto t values 1",
    "WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a",
    "TABLE t; DROP TABLE t",
    "VALUES 1; DROP TABLE t",
    "CACHE TABLE t",
    "EXPLAIN ANALYZE SELECT 1; DROP TABLE t",
    "EXPLAIN (FORMAT TEXT) INSERT INTO t SELECT 1; DROP TABLE t",
    "SELECT 1 FROM MATCHX (((; DROP TABLE t",
    "--\rDELETE FROM t",
    "SELECT 1 --\r; DROP TABLE t",
    "-- SELECT 1\r\nDROP TABLE t",
    "EXPLAIN --\rANALYZE DELETE FROM t",
    "EXPLAIN ANALYZE --\rDELETE FROM t",
    "EXPLAIN ANALYZE VERBOSE --\rDELETE FROM t",
]


@pytest.mark.parametrize("sql", CHANGING)
def test_a_changing_statement_is_rejected(sql: str, count_trials: CountTrials) -> None:
    assert read_only_fault(sql) is not None
    count_trials("statements that are rejected without --write", 1)


@pytest.mark.parametrize("sql", CHANGING)
@pytest.mark.parametrize("prefix", ["EXPLAIN ANALYZE ", "explain\n-- x\nanalyze /* y */ verbose "])
def test_a_changing_statement_after_explain_analyze_is_rejected(
    sql: str, prefix: str, count_trials: CountTrials
) -> None:
    assert read_only_fault(prefix + sql) is not None
    count_trials("statements that are rejected without --write", 1)


@pytest.mark.parametrize("sql", CHANGING)
@pytest.mark.parametrize("prefix", ["SELECT 1;", "VALUES 1 ;\n", "SELECT odd (((;", "/* a */ TABLE t; -- b\n"])
def test_a_changing_statement_after_a_query_is_rejected(sql: str, prefix: str, count_trials: CountTrials) -> None:
    assert read_only_fault(prefix + sql) is not None
    count_trials("statements that are rejected without --write", 1)
