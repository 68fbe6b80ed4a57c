-- Artworks by the artist's nationality and by classification. `share` is of all artworks.
SELECT
    coalesce(a.nationality, 'Nationality_Unknown') AS nationality,
    coalesce(w.classification, 'Not_Classified') AS classification,
    count(*) AS artworks,
    count(DISTINCT w.artist_id) AS artists,
    CAST(CAST(count(*) AS decimal(18, 6)) / sum(count(*)) OVER () AS decimal(18, 6)) AS share
FROM artworks_current AS w
LEFT JOIN artists_current AS a ON a.artist_id = w.artist_id
GROUP BY 1, 2
