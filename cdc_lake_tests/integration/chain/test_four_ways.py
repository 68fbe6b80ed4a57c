"""A database that nobody prepared is captured in four ways, each by one new YAML and without code.

By an outbox that its owner adds, from the log to Hudi tables, from the log to Parquet files, and by polling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from cdc_lake.demo import verification
from cdc_lake.pipeline.pipeline import STAGES
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline

DATABASE = "library"
TABLES = """
create table books (
    id int primary key, title text not null, genre text, price numeric(8, 2), tags text[], details jsonb,
    changed timestamptz not null default now()
);
create table loans (
    book_id int references books on update cascade on delete cascade, member text, due date,
    primary key (book_id, member)
);
create function touch() returns trigger language plpgsql as $$ begin new.changed = now(); return new; end $$;
create trigger touch before insert or update on books for each row execute function touch();
insert into books (id, title, genre, price, tags, details)
    select n, 'Book ' || n, 'genre ' || n % 3, n + 0.5, array['t' || n], jsonb_build_object('pages', n)
    from generate_series(1, 50) n;
insert into loans select n, 'member ' || n % 7, date '2026-01-01' + n from generate_series(1, 50) n;
"""
OUTBOX = """
create table outbox (id bigint generated always as identity primary key, book_id int, document jsonb not null);
create function send() returns trigger language plpgsql as $$
    begin insert into outbox (book_id, document) values (new.id, to_jsonb(new)); return null; end $$;
create trigger send after insert or update on books for each row execute function send();
update books set details = details;
"""
CHANGES = """
insert into books (id, title, genre, price) values (100, 'Ünïcode', 'genre 1', 9.99);
update books set price = price + 1, tags = null where id between 10 and 20;
update books set id = 200 where id = 30;
update loans set due = due + 7 where book_id = 3;
delete from books where id = 5;
"""


@dataclass(frozen=True)
class Way:
    """What a user writes for one way: the YAML's fields after the name, and SQL files.

    `dataset` and `source` select the same rows, from the dataset and from the source.
    """

    yaml: str
    files: Mapping[str, str]
    dataset: str
    source: str
    warned: tuple[str, ...] = field(default=())
    """The checks that warn of what would make this way faster."""


WAYS = {
    "library_outbox": Way(
        """
  source: { database: library, schema: public, tables: [outbox], publication: library_outbox }
  stream: { prefix: library_outbox }
  tables: [{ name: outbox, key: [id] }]
  targets: [{ name: lake, database: library_outbox }]
  datasets: [titles.sql]
""",
        {"titles.sql": "SELECT id, book_id, json_extract_scalar(document, '$.title') AS title FROM outbox_current\n"},
        "SELECT id, book_id, title FROM titles ORDER BY id",
        "select id, book_id, document ->> 'title' from outbox order by id",
    ),
    "library_hudi": Way(
        """
  source: { database: library, schema: public, tables: [books, loans], publication: library_hudi }
  stream: { prefix: library_hudi }
  tables: [{ name: books, key: [id] }, { name: loans, key: [book_id, member] }]
  targets: [{ name: lake, database: library_hudi }]
  datasets: [due.sql]
""",
        {"due.sql": "SELECT book_id, member, title FROM loans_current JOIN books_current ON id = book_id"},
        "SELECT book_id, member, title FROM due ORDER BY 1, 2",
        "select book_id, member, title from loans join books on id = book_id order by 1, 2",
    ),
    "library_files": Way(
        """
  source: { database: library, schema: public, tables: [books, loans], publication: library_files }
  stream: { prefix: library_files }
  landing: { format: parquet }
  tables: [{ name: books, key: [id] }, { name: loans, key: [book_id, member] }]
  targets: [{ name: files, database: library_files, format: parquet }]
  datasets: [{ sql: by_genre.sql, partition_by: [genre] }]
""",
        {"by_genre.sql": "SELECT id, title, price, genre FROM books_latest\n"},
        "SELECT id, title, price, genre FROM by_genre ORDER BY id",
        "select id, title, price, genre from books order by id",
    ),
    "library_polled": Way(
        """
  source: { kind: query, database: library, schema: public }
  stream: { prefix: library_polled }
  tables: [{ name: books, key: [id], poll: { timestamp: changed } }]
  targets: [{ name: lake, database: library_polled }]
  datasets: [prices.sql]
""",
        {"prices.sql": "SELECT id, price FROM books_current\n"},
        "SELECT id, price FROM prices ORDER BY id",
        "select id, price from books order by id",
        ("polled_column_indexed",),
    ),
}


@pytest.fixture
def library(chain_stack: None) -> Iterator[None]:  # noqa: ARG001 - the stack must run
    """Create the database of an application."""
    postgres = resolved()["postgres"]
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"create database {DATABASE}")
    with postgres.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute(TABLES)
        cursor.execute(OUTBOX)
    yield
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"drop database {DATABASE} with (force)")


def carry(pipeline: ChainPipeline) -> None:
    """Bring all changes of the source to the datasets, as the sensors and the reconciliation do."""
    if pipeline.loaded.polled:
        source = pipeline.loaded.source_postgres(pipeline.resources["postgres"])
        for table in pipeline.loaded.tables:
            polled_source.await_visible(table, source, 60)
            pipeline.materialise("topic", "raw", "lake")
            pipeline.reconcile(table.name)
        pipeline.materialise("raw", "lake")
    else:
        pipeline.land_and_apply()
    pipeline.materialise("dataset")


@pytest.mark.usefixtures("library")
def test_one_database_is_captured_in_four_ways(new_pipeline: NewPipeline) -> None:
    pipelines = {}
    for name, way in WAYS.items():
        text = f"type: cdc_lake.CdcPipeline\nattributes:\n  name: {name}{way.yaml}"
        pipelines[name] = new_pipeline(name, {}, datasets=way.files, text=text, checked=STAGES)
        found = pipelines[name].materialise(*STAGES)
        assert {check.rpartition(":")[2] for check in found.failed} == set(way.warned), found.failed
    pipelines["library_hudi"].execute(CHANGES)
    for name, way in WAYS.items():
        pipeline = pipelines[name]
        carry(pipeline)
        compared = verification.compare(pipeline.loaded, pipeline.resources, spark())
        assert {table: each["clean"] for table, each in compared.items()} == dict.fromkeys(compared, True)
        assert all(each["compared"] > 0 for each in compared.values())
        assert pipeline.by_athena(way.dataset) == pipeline.execute(way.source)
        assert pipeline.dead_letters() == []
