-- The addresses of today, one partition for each country. Athena accepts only ASCII in partition values: the column is
-- without accents.
SELECT
    address_id,
    address,
    address2,
    district,
    city,
    postal_code,
    phone,
    last_update,
    regexp_replace(normalize(country, NFD), '[^ -~]', '') AS country
FROM address_with_country_latest
