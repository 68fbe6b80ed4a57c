"""Which tables a statement reads."""

from __future__ import annotations

import pytest
import sqlglot

from cdc_lake.contract.sql_tables import lower_names, tables


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM Orders", ["orders"]),
        ("WITH Recent AS (SELECT * FROM orders) SELECT * FROM recent", ["orders"]),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM ORDERS", ["orders"]),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t, k", ["k"]),
        ("SELECT (SELECT max(x) FROM a.e) FROM f WHERE x IN (SELECT x FROM g) UNION ALL SELECT 1 FROM h", list("efgh")),
        ("SELECT * FROM z CROSS JOIN UNNEST(ARRAY[1, 2]) AS u(n)", ["z"]),
        ("DESCRIBE orders", ["orders"]),
    ],
)
def test_names_of_with_clauses_are_no_tables(sql: str, names: list[str]) -> None:
    tree = lower_names(sqlglot.parse_one(sql, dialect="athena"))
    assert sorted(each.name for each in tables(tree)) == names
