"""Where a statement ends, and which question marks are operators, by PostgreSQL's lexical rules."""

from __future__ import annotations

import pytest

from cdc_lake.contract.sql_tokens import for_jdbc, one_statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", "select 1"),
        ("\n-- before\nselect 1;\n", "-- before\nselect 1"),
        ("select 1 -- after", "select 1"),
        ("select 1; -- after;\n/* and /* after */ that; */ ;", "select 1"),
        ("select '-- text;' -- after", "select '-- text;'"),
        ('select "--"', 'select "--"'),
        ("select $a$ -- $a$ as t;", "select $a$ -- $a$ as t"),
        ("select 1; select 2;", "select 1; select 2"),
        ("-- nothing", ""),
    ],
)
def test_a_statement_ends_before_its_semicolon_and_comments(text: str, expected: str) -> None:
    assert one_statement(text) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("doc ? 'a' and doc ?| array['b?'] and doc @? '$.c'", "doc ?? 'a' and doc ??| array['b?'] and doc @?? '$.c'"),
        (
            "select 'it''s ?', E'\\'?', $$?$$, $t$ ? $$ $t$, \"a?\"",
            "select 'it''s ?', E'\\'?', $$?$$, $t$ ? $$ $t$, \"a?\"",
        ),
        ("select 1 -- why?\n where a ? b", "select 1 -- why?\n where a ?? b"),
        ("select /* a? /* b? */ c? */ d ? e", "select /* a? /* b? */ c? */ d ?? e"),
    ],
)
def test_operators_with_a_question_mark_are_escaped(sql: str, expected: str) -> None:
    assert for_jdbc(sql) == expected
