-- The known nationality with the most artworks, and the share of artworks without a known one.
WITH counted AS (
    SELECT nullif(nationality, 'Nationality_Unknown') AS nationality, count(*) AS artworks
    FROM collection
    GROUP BY 1
),
ranked AS (
    SELECT
        nationality,
        artworks,
        row_number() OVER (ORDER BY CASE WHEN nationality IS NULL THEN 1 ELSE 0 END, artworks DESC, nationality) AS place
    FROM counted
)
SELECT
    max(CASE WHEN place = 1 THEN nationality END) AS largest,
    sum(CASE WHEN place = 1 THEN artworks END) AS largest_artworks,
    round(
        CAST(sum(CASE WHEN place = 1 THEN artworks END) AS double) / CAST(nullif(sum(artworks), 0) AS double), 6
    ) AS largest_share,
    sum(artworks) AS all_artworks,
    round(
        CAST(sum(CASE WHEN nationality IS NULL THEN artworks ELSE 0 END) AS double) / CAST(nullif(sum(artworks), 0) AS double), 6
    ) AS unknown_share
FROM ranked
