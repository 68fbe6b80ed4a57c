-- Each film with its language, once for each of its categories.
SELECT
    f.film_id,
    f.title,
    l.name AS language,
    f.length,
    f.rental_rate,
    f.rating,
    c.name AS category
FROM film_latest AS f
JOIN language_latest AS l ON l.language_id = f.language_id
JOIN film_category_latest AS fc ON fc.film_id = f.film_id
JOIN category_latest AS c ON c.category_id = fc.category_id
