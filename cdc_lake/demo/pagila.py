"""Pagila's demo: change films, categories and actors, and read the raw files, the latest rows and the refined tables.

The raw files keep every change. The view of latest rows and the Hudi table show the source's rows, and the refined
tables are rebuilt from the view. After an interruption each function can be called again.
"""

from __future__ import annotations

from contextlib import closing

from psycopg2.extensions import connection

from cdc_lake.demo.catalog_reader import CatalogReader
from cdc_lake.demo.demo_run import DemoRun, Observed, RunStages
from cdc_lake.samples.pagila import source_changes

_TO_LAKE = ("topic", "raw", "lake")


def change_category(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Insert a category, and move film 1 to it: the category is in the key, so the row of the old key is deleted."""
    film = source_changes.CHANGED_FILMS[0]
    with closing(_connect(demo)) as conn:
        category = source_changes.insert_category(conn)
        source_changes.change_film_category(conn, category)
    for table in ("category", "film_category"):
        run_stages(*_TO_LAKE, table=table, light=True)
    run_stages("dataset", light=True)
    catalog, film_condition = CatalogReader.of(demo), f"film_id = {film}"
    seen = {
        "film_id": film,
        "new_category": catalog.values("name", "category_latest", f"category_id = {category}"),
        "categories_in_raw": len(set(catalog.values("category_id", "film_category_raw", film_condition))),
        "categories_in_latest": catalog.values("category_id", "film_category_latest", film_condition),
        "categories_in_lake": catalog.values("category_id", catalog.hudi("film_category"), film_condition),
        "categories_in_refined": catalog.values("category", "films_by_category", film_condition),
    }
    name = source_changes.CATEGORY
    return {**seen, "ok": list(seen.values()) == [film, [name], 2, [category], [category], [name]]}


def update_films(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Give three films another rating and rate: they move to another partition of the refined table."""
    films = source_changes.CHANGED_FILMS
    with closing(_connect(demo)) as conn:
        source_changes.update_films(conn)
    run_stages(*_TO_LAKE, table="film", light=True)
    run_stages("dataset", light=True)
    catalog, films_condition = CatalogReader.of(demo), f"film_id IN ({', '.join(map(str, films))})"
    places = {"latest": "film_latest", "lake": catalog.hudi("film"), "refined": "film_refined"}
    expected = [(number, source_changes.NEW_RATING, source_changes.NEW_RATE) for number in films]
    states = {
        name: catalog.values("film_id, rating, rental_rate", table, films_condition) for name, table in places.items()
    }
    earlier = catalog.count("film_raw", f"{films_condition} AND rental_rate <> {source_changes.NEW_RATE}")
    seen = {
        "film_id": films[0],
        **{f"films_as_updated_in_{name}": len(set(found) & set(expected)) for name, found in states.items()},
        "earlier_states_in_raw": earlier,
    }
    return {**seen, "ok": all(found == expected for found in states.values()) and earlier > 0}


def change_key(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Change film_id of a film_actor from 5 to 100: the row of the old key is deleted, and a new row inserted."""
    with closing(_connect(demo)) as conn:
        actor = source_changes.change_film_actor_key(conn)
    run_stages(*_TO_LAKE, table="film_actor", light=True)
    old, new = source_changes.OLD_KEY_FILM, source_changes.NEW_KEY_FILM
    catalog, actor_condition = CatalogReader.of(demo), f"actor_id = {actor} AND film_id IN ({old}, {new})"
    seen = {
        "actor_id": actor,
        "films_in_raw": sorted(set(catalog.values("film_id", "film_actor_raw", actor_condition))),
        "films_in_latest": catalog.values("film_id", "film_actor_latest", actor_condition),
        "films_in_lake": catalog.values("film_id", catalog.hudi("film_actor"), actor_condition),
    }
    return {**seen, "ok": list(seen.values()) == [actor, [old, new], [new], [new]]}


def delete_film(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Delete one actor of a film, then the film with the others: only raw still contains the deleted rows."""
    film = source_changes.DELETED_FILM
    catalog, film_condition = CatalogReader.of(demo), f"film_id = {film}"
    deleted = f'{film_condition} AND "__deleted"'
    with closing(_connect(demo)) as conn:
        source_changes.delete_film_actor(conn)
        run_stages(*_TO_LAKE, table="film_actor", light=True)
        actors = {
            "actors_left_at_source": source_changes.actors(conn, film),
            "actors_left_in_latest": catalog.values("actor_id", "film_actor_latest", film_condition),
            "actors_left_in_lake": catalog.values("actor_id", catalog.hudi("film_actor"), film_condition),
        }
        source_changes.delete_film(conn)
    for table in ("film", "film_category", "film_actor"):
        run_stages(*_TO_LAKE, table=table, light=True)
    run_stages("dataset")
    left = actors["actors_left_at_source"]
    actors_deleted_in_raw = len(set(catalog.values("actor_id", "film_actor_raw", deleted)))
    seen = {
        "film_id": film,
        "deletes_in_raw": len(set(catalog.values("film_id", "film_raw", deleted))),
        "in_latest": catalog.count("film_latest", film_condition),
        "actors_in_latest": catalog.count("film_actor_latest", film_condition),
        "in_lake": catalog.count(catalog.hudi("film"), film_condition),
        "in_refined": catalog.count("film_refined", film_condition),
        "in_films_by_category": catalog.count("films_by_category", film_condition),
    }
    ok = list(seen.values()) == [film, 1, 0, 0, 0, 0, 0] and list(actors.values()) == [left] * 3
    return {
        **seen,
        **actors,
        "actors_deleted_in_raw": actors_deleted_in_raw,
        "ok": ok and actors_deleted_in_raw > len(left),
    }


def _connect(demo: DemoRun) -> connection:
    return demo.observer.login.connect()
