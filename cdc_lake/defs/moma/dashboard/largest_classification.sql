-- The class with the most artworks.
WITH counted AS (
    SELECT classification, count(*) AS artworks
    FROM collection
    WHERE classification IS NOT NULL
    GROUP BY 1
),
ranked AS (
    SELECT classification, artworks, row_number() OVER (ORDER BY artworks DESC, classification) AS place
    FROM counted
)
SELECT
    max(CASE WHEN place = 1 THEN classification END) AS classification,
    sum(CASE WHEN place = 1 THEN artworks END) AS classified_artworks,
    round(
        CAST(sum(CASE WHEN place = 1 THEN artworks END) AS double) / CAST((SELECT nullif(count(*), 0) FROM collection) AS double), 6
    ) AS classified_share
FROM ranked
