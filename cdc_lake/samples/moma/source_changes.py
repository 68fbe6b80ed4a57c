"""The changes that the MoMA demo makes at the source: an artwork's year, and five updates and a delete of an artist.

Each function makes one change in one transaction, as an application would.
"""

from __future__ import annotations

from psycopg2 import sql
from psycopg2.extensions import connection

from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.moma.generate import DEMO_ARTIST, DEMO_ARTWORK

TITLE, YEAR = DEMO_ARTWORK[0], DEMO_ARTWORK[3]
NEW_YEAR = 1960
ARTIST_COLUMNS = ("artist_id", "name", "nationality", "gender", "birth_year", "death_year")
ARTIST = dict(zip(ARTIST_COLUMNS, DEMO_ARTIST, strict=True))
ARTIST_ID = int(str(ARTIST["artist_id"]))
ARTIST_UPDATES: tuple[tuple[str, object], ...] = (
    ("birth_year", 1968),
    ("death_year", 2000),
    ("gender", None),
    ("nationality", "American"),
    ("name", "Belkis Ayón Manso"),
)
"""The column and the new value of each update. A new nationality also moves the row to another lake partition."""


def set_artwork_year(conn: connection, year: int) -> tuple[int, bool]:
    """Set the year of the demo's artwork; return its id, and whether the year changed.

    Raises LoadError if the artwork does not exist.
    """
    with conn, conn.cursor() as cur:
        cur.execute("SELECT artwork_id, date FROM artworks WHERE title = %s FOR UPDATE", (TITLE,))
        row = cur.fetchone()
        if row is None:
            raise LoadError(f"Cannot change {TITLE!r}: it is not in artworks. Load the MoMA sample first.")
        artwork_id, old_year = row
        if old_year != year:
            cur.execute("UPDATE artworks SET date = %s WHERE artwork_id = %s", (year, artwork_id))
    return int(artwork_id), old_year != year


def restore_artist(conn: connection) -> bool:
    """Insert or reset the demo's artist with the sample's values; return whether the row changed."""
    columns = [sql.Identifier(name) for name in ARTIST_COLUMNS]
    names = sql.SQL(", ").join(columns)
    new = sql.SQL(", ").join(sql.SQL("excluded.{}").format(column) for column in columns)
    old = sql.SQL(", ").join(sql.SQL("artists.{}").format(column) for column in columns)
    with conn, conn.cursor() as cur:
        cur.execute(
            sql.SQL(
                "INSERT INTO artists ({names}) VALUES ({values}) ON CONFLICT (artist_id) DO UPDATE "
                "SET ({names}) = ROW ({new}) WHERE ({old}) IS DISTINCT FROM ({new})"
            ).format(names=names, values=sql.SQL(", ").join(map(sql.Literal, ARTIST.values())), new=new, old=old)
        )
        return cur.rowcount > 0


def update_artist(conn: connection, column: str, value: object) -> None:
    """Set one column of the demo's artist."""
    with conn, conn.cursor() as cur:
        cur.execute(
            sql.SQL("UPDATE artists SET {} = %s WHERE artist_id = %s").format(sql.Identifier(column)),
            (value, ARTIST_ID),
        )


def delete_artist(conn: connection) -> None:
    """Delete the demo's artist, but not the artist's artworks."""
    with conn, conn.cursor() as cur:
        cur.execute("DELETE FROM artists WHERE artist_id = %s", (ARTIST_ID,))
