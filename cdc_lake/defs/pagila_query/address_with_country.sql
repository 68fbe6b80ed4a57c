-- A change of an address is found; a city that is renamed is not seen until the address changes.
SELECT
    a.address_id,
    a.address,
    a.address2,
    a.district,
    c.city,
    a.postal_code,
    a.phone,
    k.country,
    a.last_update
FROM public.address AS a
JOIN public.city AS c ON c.city_id = a.city_id
JOIN public.country AS k ON k.country_id = c.country_id
