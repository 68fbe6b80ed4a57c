"""The Pagila demos' changes at the source.

Each function makes one change in one transaction, as an application would. Rows are found by key, or by name if a demo
inserted them, so that the functions work on the generated rows and on a dump of Pagila. A function can be called again
after an interruption: it inserts no row twice, and does not fail if the row to delete is already deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from psycopg2 import sql
from psycopg2.extensions import connection, cursor

from cdc_lake.samples.errors import LoadError

CATEGORY = "Telenovelas"
CHANGED_FILMS, NEW_RATING, NEW_RATE = (1, 2, 3), "NC-17", Decimal("3.99")
DELETED_FILM, COPIES_GO_TO = 7, 8
"""The film that is deleted, and the one that gets its copies."""
OLD_KEY_FILM, NEW_KEY_FILM = 5, 100
"""The film_id of a film_actor before and after its key changes."""

ADDRESS = 102
"""The address that is updated, and moved to the new city."""
NEW_STREET, NEW_ADDRESS2, NEW_PHONE = "1 Vibranium Way", "Suite 200", "5550100"
COUNTRY, CITY, NEW_DISTRICT = "Wakanda", "Birnin Zana", "Lake Turkana"
DELETED_ADDRESS, CUSTOMERS_MOVE_TO = 104, 105
"""The address that is deleted, and the one that its customers, stores and staff get."""


def insert_category(conn: connection) -> int:
    """Insert the demo's category if it is missing; return its id."""
    with conn, conn.cursor() as cur:
        return _find_or_insert(
            cur,
            "SELECT category_id FROM category WHERE name = %s",
            "INSERT INTO category (name) VALUES (%s) RETURNING category_id",
            (CATEGORY,),
        )


def update_films(conn: connection) -> None:
    """Update rating and rental rate of three films. They move to other partitions of a table partitioned by rating."""
    with conn, conn.cursor() as cur:
        cur.execute(
            "UPDATE film SET rating = %s, rental_rate = %s WHERE film_id IN %s", (NEW_RATING, NEW_RATE, CHANGED_FILMS)
        )
        _require(cur, "film", CHANGED_FILMS[0])


def change_film_category(conn: connection, category_id: int) -> None:
    """Put the first of the films into a category. The category is in the key: the row of the old key is deleted."""
    with conn, conn.cursor() as cur:
        cur.execute("UPDATE film_category SET category_id = %s WHERE film_id = %s", (category_id, CHANGED_FILMS[0]))
        _require(cur, "film_category", CHANGED_FILMS[0])


def change_film_actor_key(conn: connection) -> int:
    """Change film_id of a film_actor from 5 to 100; return the actor's id.

    Takes the first actor of film 5 who is not in film 100. Raises LoadError if there is no such actor.
    """
    with conn, conn.cursor() as cur:
        cur.execute(
            """
            UPDATE film_actor SET film_id = %(new)s
             WHERE film_id = %(old)s AND actor_id = (
                SELECT min(actor_id) FROM film_actor
                 WHERE film_id = %(old)s AND actor_id NOT IN (SELECT actor_id FROM film_actor WHERE film_id = %(new)s))
            RETURNING actor_id
            """,
            {"old": OLD_KEY_FILM, "new": NEW_KEY_FILM},
        )
        row = cur.fetchone()
        if row is None:
            raise LoadError(
                f"Cannot change a key of film_actor: film {OLD_KEY_FILM} has no actor who is not in film "
                f"{NEW_KEY_FILM} too. Load the Pagila sample again."
            )
        return int(row[0])


def delete_film_actor(conn: connection) -> int | None:
    """Delete the first row of film_actor of a film; return the actor's id, or None if the film has no actors."""
    with conn, conn.cursor() as cur:
        cur.execute(
            """
            DELETE FROM film_actor
             WHERE film_id = %(film)s AND actor_id = (SELECT min(actor_id) FROM film_actor WHERE film_id = %(film)s)
            RETURNING actor_id
            """,
            {"film": DELETED_FILM},
        )
        row = cur.fetchone()
        return None if row is None else int(row[0])


def actors(conn: connection, film_id: int) -> list[int]:
    """Return the ids of a film's actors, sorted."""
    with conn, conn.cursor() as cur:
        cur.execute("SELECT actor_id FROM film_actor WHERE film_id = %s ORDER BY actor_id", (film_id,))
        return [int(row[0]) for row in cur.fetchall()]


def delete_film(conn: connection) -> None:
    """Delete a film with its actors and category, after its copies were given to another film."""
    with conn, conn.cursor() as cur:
        cur.execute("UPDATE inventory SET film_id = %s WHERE film_id = %s", (COPIES_GO_TO, DELETED_FILM))
        cur.execute("DELETE FROM film_actor WHERE film_id = %s", (DELETED_FILM,))
        cur.execute("DELETE FROM film_category WHERE film_id = %s", (DELETED_FILM,))
        cur.execute("DELETE FROM film WHERE film_id = %s", (DELETED_FILM,))


def add_poll_indexes(conn: connection) -> None:
    """Index the columns that are polled; the published schema has no such indexes."""
    with conn, conn.cursor() as cur:
        for table in ("address", "city", "country"):
            cur.execute(f"CREATE INDEX IF NOT EXISTS {table}_last_update ON {table} (last_update)")


def update_address(conn: connection) -> Iterator[None]:
    """Update an address in two transactions, the street, then the second line; yields after each."""
    for column, value in (("address", NEW_STREET), ("address2", NEW_ADDRESS2)):
        with conn, conn.cursor() as cur:
            cur.execute(
                sql.SQL("UPDATE address SET {} = %s WHERE address_id = %s").format(sql.Identifier(column)),
                (value, ADDRESS),
            )
            _require(cur, "address", ADDRESS)
        yield


def insert_country_and_city(conn: connection) -> tuple[int, int]:
    """Insert the country Wakanda with its city Birnin Zana if they are missing; return both ids."""
    with conn, conn.cursor() as cur:
        country_id = _find_or_insert(
            cur,
            "SELECT country_id FROM country WHERE country = %s",
            "INSERT INTO country (country) VALUES (%s) RETURNING country_id",
            (COUNTRY,),
        )
        city_id = _find_or_insert(
            cur,
            "SELECT city_id FROM city WHERE city = %s AND country_id = %s",
            "INSERT INTO city (city, country_id) VALUES (%s, %s) RETURNING city_id",
            (CITY, country_id),
        )
    return country_id, city_id


def move_address_as_printed(conn: connection, city_id: int) -> str:
    """Run the exercise's UPDATE exactly as it is printed, with its mistake; return the phone.

    `SET phone = city_id = 601` sets only the phone, to the text of the comparison: 'false' before the address is in
    that city, 'true' after it.
    """
    with conn, conn.cursor() as cur:
        cur.execute("UPDATE address SET phone = city_id = %s WHERE address_id = %s RETURNING phone", (city_id, ADDRESS))
        _require(cur, "address", ADDRESS)
        return str((cur.fetchone() or ("",))[0])


def move_address(conn: connection, city_id: int) -> None:
    """Move the address to the city and change its phone, as the exercise intends."""
    with conn, conn.cursor() as cur:
        cur.execute("UPDATE address SET phone = %s, city_id = %s WHERE address_id = %s", (NEW_PHONE, city_id, ADDRESS))
        _require(cur, "address", ADDRESS)


def rename_district(conn: connection) -> int:
    """Rename the district of the demo's address in all addresses that have it; return the number of addresses."""
    with conn, conn.cursor() as cur:
        cur.execute(
            "UPDATE address SET district = %s WHERE district = (SELECT district FROM address WHERE address_id = %s)",
            (NEW_DISTRICT, ADDRESS),
        )
        _require(cur, "address", ADDRESS)
        return cur.rowcount


def delete_address(conn: connection) -> None:
    """Delete an address, after its customers, stores and staff got another one."""
    with conn, conn.cursor() as cur:
        for statement in (
            "UPDATE customer SET address_id = %s WHERE address_id = %s",
            "UPDATE store SET address_id = %s WHERE address_id = %s",
            "UPDATE staff SET address_id = %s WHERE address_id = %s",
        ):
            cur.execute(statement, (CUSTOMERS_MOVE_TO, DELETED_ADDRESS))
        cur.execute("DELETE FROM address WHERE address_id = %s", (DELETED_ADDRESS,))


def _find_or_insert(cur: cursor, find: str, insert: str, values: tuple[object, ...]) -> int:
    """Return the id of the row with these values; insert it if it is missing."""
    cur.execute(find, values)
    row = cur.fetchone()
    if row is None:
        cur.execute(insert, values)
        row = cur.fetchone() or (0,)
    return int(row[0])


def _require(cur: cursor, table: str, row_id: int) -> None:
    """Raise LoadError if the last UPDATE found no row."""
    if cur.rowcount == 0:
        raise LoadError(f"Cannot change {table}: it has no row with id {row_id}. Load the Pagila sample first.")
