"""The MoMA sample: artists and artworks of a museum, generated or from the museum's files.

The generated rows resemble the museum's collection: the shares of nationalities, genders, classifications and NULLs are
those of its file of 1,000 artists. Persons and titles are invented, except for the two that the demo changes.
"""

from __future__ import annotations

from pathlib import Path

DATABASE = "moma"
SCHEMA = "public"
TABLES = ("artists", "artworks")
DELIMITER = "|"
"""The delimiter of the museum's files."""
MARK = "The MoMA sample of cdc-lake"
"""The comment of both tables, without which `unload` drops nothing."""
SCHEMA_SQL = Path(__file__).with_name("schema.sql")
