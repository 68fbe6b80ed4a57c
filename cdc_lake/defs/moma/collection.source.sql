-- The query of collection on the source's tables: the check compares the totals of both.
SELECT
    w.artwork_id,
    w.title,
    w.classification,
    w.department,
    w.date AS year_made,
    CASE WHEN w.acquisition_date ~ '^\d{4}-\d{2}-\d{2}$' THEN substr(w.acquisition_date, 1, 4)::integer END AS year_acquired,
    w.artist_id,
    a.name AS artist,
    a.nationality,
    a.gender
FROM artworks AS w
LEFT JOIN artists AS a ON a.artist_id = w.artist_id
