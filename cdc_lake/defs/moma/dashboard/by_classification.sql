-- Classes by the number of artworks, largest first.
WITH counted AS (
    SELECT coalesce(classification, 'Not_Classified') AS classification, count(*) AS artworks, count(DISTINCT artist_id) AS artists
    FROM collection
    GROUP BY 1
)
SELECT
    classification,
    artworks,
    round(CAST(artworks AS double) / CAST(sum(artworks) OVER () AS double), 6) AS share,
    artists
FROM counted
ORDER BY artworks DESC, classification
