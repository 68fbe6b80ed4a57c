-- The query of artworks_by_nationality on the source's tables: the check compares the totals of both.
SELECT
    coalesce(a.nationality, 'Nationality_Unknown') AS nationality,
    coalesce(w.classification, 'Not_Classified') AS classification,
    count(*) AS artworks,
    count(DISTINCT w.artist_id) AS artists,
    (count(*)::decimal(18, 6) / sum(count(*)) OVER ())::decimal(18, 6) AS share
FROM artworks AS w
LEFT JOIN artists AS a ON a.artist_id = w.artist_id
GROUP BY 1, 2
