-- The query of addresses_by_country on the source's tables: the check compares the totals of both.
SELECT
    a.address_id,
    a.address,
    a.address2,
    a.district,
    c.city,
    a.postal_code,
    a.phone,
    a.last_update,
    regexp_replace(normalize(k.country, NFD), '[^ -~]', '', 'g') AS country
FROM public.address AS a
JOIN public.city AS c ON c.city_id = a.city_id
JOIN public.country AS k ON k.country_id = c.country_id
