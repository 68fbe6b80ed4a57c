"""The MoMA generator: the same rows each time, with the proportions and the difficult texts of the museum's file."""

from __future__ import annotations

from collections import Counter

from cdc_lake.samples.moma.generate import (
    ARTISTS,
    ARTWORKS,
    DEMO_ARTIST,
    DEMO_ARTWORK,
    dataset,
)


def test_the_same_seed_gives_the_same_rows() -> None:
    assert dataset() == dataset()
    assert dataset(1) != dataset(2)


def test_rows_have_all_columns_and_unique_ids() -> None:
    artists, artworks = dataset()
    assert (len(artists.columns), len(artworks.columns)) == (6, 21)
    assert (len(artists.rows), len(artworks.rows)) == (ARTISTS, ARTWORKS)
    for table in (artists, artworks):
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert len({row[0] for row in table.rows}) == len(table.rows)


def test_proportions_and_texts_resemble_the_museums_file() -> None:
    artists, artworks = dataset()
    nationalities = Counter(row[2] for row in artists.rows)
    assert 120 < nationalities[None] < 170
    assert 330 < nationalities["American"] < 520
    classifications = Counter(row[11] for row in artworks.rows)
    assert classifications[None] > 0
    assert len(classifications) == 11
    names = [str(row[1]) for row in artists.rows]
    assert any(not name.isascii() for name in names)
    assert any('"' in name for name in names)
    assert any("|" in str(row[1]) for row in artworks.rows)


def test_the_rows_that_the_demo_changes_are_generated() -> None:
    artists, artworks = dataset()
    assert DEMO_ARTIST in artists.rows
    [picador] = [row for row in artworks.rows if row[1] == DEMO_ARTWORK[0]]
    assert (picador[4], picador[11]) == (1959, "Print")
