-- The query of film_refined on the source's table: the check compares the totals of both.
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
FROM film
