-- The query of films_by_category on the source's tables: the check compares the totals of both.
SELECT
    f.film_id,
    f.title,
    l.name AS language,
    f.length,
    f.rental_rate,
    f.rating,
    c.name AS category
FROM film AS f
JOIN language AS l ON l.language_id = f.language_id
JOIN film_category AS fc ON fc.film_id = f.film_id
JOIN category AS c ON c.category_id = fc.category_id
