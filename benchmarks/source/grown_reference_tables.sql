-- Add 99 copies of each row, with new keys, to the tables that documents read, except region. No order refers to a copy.
DO $$
DECLARE
    name text;
    key text;
BEGIN
    FOR name, key IN VALUES ('employees', 'employee_id'), ('shippers', 'shipper_id'), ('categories', 'category_id'),
                            ('suppliers', 'supplier_id'), ('products', 'product_id')
    LOOP
        EXECUTE format(
            'INSERT INTO datalake.%1$I SELECT (jsonb_populate_record(t, jsonb_build_object(%2$L, t.%2$I + 100 * n))).* '
            'FROM datalake.%1$I t, generate_series(1, 99) n', name, key);
    END LOOP;
END
$$;

INSERT INTO datalake.customers
SELECT (jsonb_populate_record(c, jsonb_build_object('customer_id', 'Z' || lpad((row_number() OVER ())::text, 4, '0')))).*
  FROM datalake.customers c, generate_series(1, 99);

INSERT INTO datalake.territories
SELECT (jsonb_populate_record(t, jsonb_build_object('territory_id', t.territory_id || '-' || n))).*
  FROM datalake.territories t, generate_series(1, 99) n;

INSERT INTO datalake.employee_territories
SELECT t.employee_id + 100 * n, t.territory_id || '-' || n
  FROM datalake.employee_territories t, generate_series(1, 99) n;
