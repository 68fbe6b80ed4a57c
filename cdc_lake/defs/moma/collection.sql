-- Each artwork with its artist; an artist who is not in the table artists has no nationality and no name here.
-- The museum's dates are texts: only those of the form YYYY-MM-DD have a year.
SELECT
    w.artwork_id,
    w.title,
    w.classification,
    w.department,
    w."date" AS year_made,
    CASE
        WHEN regexp_like(w.acquisition_date, '^\d{4}-\d{2}-\d{2}$') THEN CAST(substr(w.acquisition_date, 1, 4) AS integer)
    END AS year_acquired,
    w.artist_id,
    a.name AS artist,
    a.nationality,
    a.gender
FROM artworks_current AS w
LEFT JOIN artists_current AS a ON a.artist_id = w.artist_id
