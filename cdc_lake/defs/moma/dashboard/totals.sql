SELECT
    count(*) AS artworks,
    count(DISTINCT artist_id) AS artists,
    count(DISTINCT nullif(nationality, 'Nationality_Unknown')) AS nationalities,
    count(DISTINCT classification) AS classifications
FROM collection
