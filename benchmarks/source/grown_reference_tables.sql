-- Add 99 copies of each row, with new keys, to the tables that documents read, except region. No order refers to a copy.
INSERT INTO datalake.customers
SELECT (jsonb_populate_record(c, jsonb_build_object('customer_id', 'Z' || lpad((row_number() OVER ())::text, 4, '0')))).*
  FROM datalake.customers c, generate_series(1, 99);

INSERT INTO datalake.employees
SELECT (jsonb_populate_record(e, jsonb_build_object('employee_id', e.employee_id + 100 * n))).*
  FROM datalake.employees e, generate_series(1, 99) n;

INSERT INTO datalake.shippers
SELECT (jsonb_populate_record(s, jsonb_build_object('shipper_id', s.shipper_id + 100 * n))).*
  FROM datalake.shippers s, generate_series(1, 99) n;

INSERT INTO datalake.categories
SELECT (jsonb_populate_record(c, jsonb_build_object('category_id', c.category_id + 100 * n))).*
  FROM datalake.categories c, generate_series(1, 99) n;

INSERT INTO datalake.suppliers
SELECT (jsonb_populate_record(s, jsonb_build_object('supplier_id', s.supplier_id + 100 * n))).*
  FROM datalake.suppliers s, generate_series(1, 99) n;

INSERT INTO datalake.products
SELECT (jsonb_populate_record(p, jsonb_build_object('product_id', p.product_id + 100 * n))).*
  FROM datalake.products p, generate_series(1, 99) n;

INSERT INTO datalake.territories
SELECT (jsonb_populate_record(t, jsonb_build_object('territory_id', t.territory_id || '-' || n))).*
  FROM datalake.territories t, generate_series(1, 99) n;

INSERT INTO datalake.employee_territories
SELECT t.employee_id + 100 * n, t.territory_id || '-' || n
  FROM datalake.employee_territories t, generate_series(1, 99) n;
