-- Nationalities by the number of artworks, largest first.
WITH counted AS (
    SELECT coalesce(nationality, 'Nationality_Unknown') AS nationality, count(*) AS artworks, count(DISTINCT artist_id) AS artists
    FROM collection
    GROUP BY 1
)
SELECT
    nationality,
    artworks,
    round(CAST(artworks AS double) / CAST(sum(artworks) OVER () AS double), 6) AS share,
    artists
FROM counted
ORDER BY artworks DESC, nationality
