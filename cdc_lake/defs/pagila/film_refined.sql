-- The films of today, one partition for each rating.
SELECT
    film_id,
    title,
    description,
    release_year,
    language_id,
    rental_duration,
    rental_rate,
    length,
    replacement_cost,
    last_update,
    special_features,
    rating
FROM film_latest
