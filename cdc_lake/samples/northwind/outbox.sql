-- The outbox: one row for each order, which contains its data as JSON documents, for the change stream.
-- It works on the tables of schema.sql and on those of the original Northwind scripts (smallint ids, bpchar keys).
--
-- Invariant: at every commit, cdc_events equals the view order_documents.
-- Cost, and limits under concurrency: docs/decisions/0002-outbox-triggers.md.

CREATE TABLE datalake.cdc_events (
    order_id        integer PRIMARY KEY,
    customer_id     text,
    order_date      date,
    required_date   date,
    shipped_date    date,
    order_items     jsonb NOT NULL,
    products        jsonb NOT NULL,
    customer        jsonb,
    employee        jsonb,
    shipper         jsonb,
    shipment        jsonb NOT NULL,
    updated_at      timestamptz NOT NULL
) WITH (fillfactor = 70);  -- free space for updates on the same page, because no indexed column changes

-- PostgreSQL stores large documents out of line (TOAST). With the default replica identity, updates that do not change
-- such a value, and all deletes, would be streamed without it.
ALTER TABLE datalake.cdc_events REPLICA IDENTITY FULL;

-- Without columns that change often (stock, list prices) or are large (photo, notes), so that changing them rewrites
-- no documents. A product's category and supplier are in its document under their own column names, as in the original
-- outbox. A `real` is cast to float8 first, because a cast of `real` to numeric keeps only six digits (12500.55 becomes
-- 12500.5); rounding to two decimals removes the binary noise: 9.80, 0.15.
-- OFFSET 0 keeps each referenced document in its own subquery, so that PostgreSQL can cache its results (Memoize): for a
-- statement that changes 500 orders, the document of an employee is built once.
CREATE VIEW datalake.order_documents AS
SELECT o.order_id,  -- without a cast, which would prevent the use of a smallint key's index
       o.customer_id::text AS customer_id,
       o.order_date,
       o.required_date,
       o.shipped_date,
       coalesce(lines.items, '[]') AS order_items,
       coalesce(lines.products, '[]') AS products,
       customer.document AS customer,
       employee.document AS employee,
       shipper.document AS shipper,
       jsonb_build_object(
           'ship_name', o.ship_name, 'ship_address', o.ship_address, 'ship_city', o.ship_city,
           'ship_region', o.ship_region, 'ship_postal_code', o.ship_postal_code,
           'ship_country', o.ship_country, 'freight', round(o.freight::float8::numeric, 2)) AS shipment
  FROM datalake.orders o
  LEFT JOIN LATERAL (
       SELECT jsonb_build_object(
                  'customer_id', c.customer_id::text, 'company_name', c.company_name,
                  'contact_name', c.contact_name, 'contact_title', c.contact_title,
                  'address', c.address, 'city', c.city, 'region', c.region,
                  'postal_code', c.postal_code, 'country', c.country, 'phone', c.phone, 'fax', c.fax) AS document
         FROM datalake.customers c
        WHERE c.customer_id = o.customer_id OFFSET 0) AS customer ON true
  LEFT JOIN LATERAL (
       SELECT jsonb_build_object(
                  'employee_id', e.employee_id, 'last_name', e.last_name, 'first_name', e.first_name,
                  'title', e.title, 'hire_date', e.hire_date, 'city', e.city, 'country', e.country,
                  'extension', e.extension, 'reports_to', e.reports_to,
                  'territories', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                                      'territory_description', t.territory_description::text,
                                                      'region_description', r.region_description::text)
                                                  ORDER BY t.territory_id), '[]')
                                    FROM datalake.employee_territories et
                                    JOIN datalake.territories t ON t.territory_id = et.territory_id
                                    JOIN datalake.region r ON r.region_id = t.region_id
                                   WHERE et.employee_id = e.employee_id)) AS document
         FROM datalake.employees e
        WHERE e.employee_id = o.employee_id OFFSET 0) AS employee ON true
  LEFT JOIN LATERAL (
       SELECT jsonb_build_object(
                  'shipper_id', s.shipper_id, 'company_name', s.company_name, 'phone', s.phone) AS document
         FROM datalake.shippers s
        WHERE s.shipper_id = o.ship_via OFFSET 0) AS shipper ON true
 CROSS JOIN LATERAL (
       SELECT jsonb_agg(jsonb_build_object(
                            'order_id', d.order_id, 'product_id', d.product_id,
                            'unit_price', round(d.unit_price::float8::numeric, 2), 'quantity', d.quantity,
                            'discount', round(d.discount::float8::numeric, 2))
                        ORDER BY d.product_id) AS items,
              jsonb_agg(product.document ORDER BY d.product_id) FILTER (WHERE product.document IS NOT NULL) AS products
         FROM datalake.order_details d
         LEFT JOIN LATERAL (
              SELECT jsonb_build_object(
                         'product_id', p.product_id, 'product_name', p.product_name,
                         'quantity_per_unit', p.quantity_per_unit,
                         'category_id', p.category_id, 'category_name', c.category_name,
                         'description', c.description,
                         'supplier_id', p.supplier_id, 'company_name', s.company_name,
                         'city', s.city, 'country', s.country) AS document
                FROM datalake.products p
                LEFT JOIN datalake.categories c ON c.category_id = p.category_id
                LEFT JOIN datalake.suppliers s ON s.supplier_id = p.supplier_id
               WHERE p.product_id = d.product_id OFFSET 0) AS product ON true
        WHERE d.order_id = o.order_id) AS lines;

-- Writes the rows of these orders, and deletes the rows of orders that do not exist; with only_changed, writes only
-- rows whose documents differ. Returns the number of written rows.
-- This repairs the whole outbox, for example after a load with disabled triggers:
--   SELECT datalake.refresh_cdc_events(array_agg(order_id), true)
--     FROM (SELECT order_id FROM datalake.orders UNION SELECT order_id FROM datalake.cdc_events) AS ids;
-- The plan is generic, because the view joins eleven tables: planning it for each call takes longer than reading one
-- order. Only nested loops over indexes: for small tables, a generic plan would scan or merge whole tables per order.
CREATE FUNCTION datalake.refresh_cdc_events(ids integer[], only_changed boolean DEFAULT false)
RETURNS integer LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    written integer;
BEGIN
    -- Lock the rows in key order, and read in a later statement, which has a new snapshot: of two transactions that add
    -- lines to one order, the second sees the lines of the first.
    PERFORM FROM datalake.cdc_events WHERE order_id = ANY (ids) ORDER BY order_id FOR UPDATE;

    DELETE FROM datalake.cdc_events AS stored
     WHERE stored.order_id = ANY (ids)
       AND NOT EXISTS (SELECT FROM datalake.orders o WHERE o.order_id = stored.order_id);

    INSERT INTO datalake.cdc_events AS stored
    SELECT d.*, clock_timestamp() FROM datalake.order_documents d
     WHERE d.order_id = ANY (ids) ORDER BY d.order_id
    ON CONFLICT (order_id) DO UPDATE
       SET (customer_id, order_date, required_date, shipped_date, order_items, products,
            customer, employee, shipper, shipment, updated_at)
         = (excluded.customer_id, excluded.order_date, excluded.required_date, excluded.shipped_date,
            excluded.order_items, excluded.products, excluded.customer, excluded.employee,
            excluded.shipper, excluded.shipment, excluded.updated_at)
     WHERE NOT only_changed
        OR (stored.customer_id, stored.order_date, stored.required_date, stored.shipped_date,
            stored.order_items, stored.products, stored.customer, stored.employee,
            stored.shipper, stored.shipment)
           IS DISTINCT FROM
           (excluded.customer_id, excluded.order_date, excluded.required_date, excluded.shipped_date,
            excluded.order_items, excluded.products, excluded.customer, excluded.employee,
            excluded.shipper, excluded.shipment);
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END
$$;

-- Statements only record what they changed, in a table that is empty after each commit; a deferred trigger writes the
-- outbox once, when the transaction commits. A transaction therefore locks outbox rows in key order, independently of
-- the order of its statements: two transactions that add lines to the same orders do not deadlock.
CREATE UNLOGGED TABLE datalake.cdc_events_pending (
    txid        bigint NOT NULL DEFAULT txid_current(),
    first       boolean NOT NULL,  -- whether it is the transaction's first row, which fires the trigger
    changed     text NOT NULL,     -- the table
    keys        text[] NOT NULL    -- keys in `changed`; for order_details and employee_territories the first key column
);
CREATE INDEX ON datalake.cdc_events_pending (txid);

CREATE FUNCTION datalake.note_changes(changed text, keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(keys) > 0 THEN
        INSERT INTO datalake.cdc_events_pending (first, changed, keys)
        SELECT NOT EXISTS (SELECT FROM datalake.cdc_events_pending WHERE txid = txid_current()), changed, keys;
    END IF;
END
$$;

-- Returns the orders whose documents contain these rows of a table.
CREATE FUNCTION datalake.orders_showing(changed text, keys text[]) RETURNS SETOF integer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    ids integer[] := CASE WHEN changed NOT IN ('customers', 'territories') THEN keys::integer[] END;
BEGIN
    CASE changed
    WHEN 'customers' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.customer_id::text = ANY (keys);
    WHEN 'employees', 'employee_territories' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.employee_id = ANY (ids);
    WHEN 'territories' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o
                       JOIN datalake.employee_territories et ON et.employee_id = o.employee_id
                      WHERE et.territory_id = ANY (keys);
    WHEN 'region' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o
                       JOIN datalake.employee_territories et ON et.employee_id = o.employee_id
                       JOIN datalake.territories t ON t.territory_id = et.territory_id
                      WHERE t.region_id = ANY (ids);
    WHEN 'shippers' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.ship_via = ANY (ids);
    WHEN 'products' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d WHERE d.product_id = ANY (ids);
    WHEN 'categories' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d
                       JOIN datalake.products p ON p.product_id = d.product_id WHERE p.category_id = ANY (ids);
    WHEN 'suppliers' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d
                       JOIN datalake.products p ON p.product_id = d.product_id WHERE p.supplier_id = ANY (ids);
    END CASE;
END
$$;

-- Changed orders and order lines are always written. A change of a referenced table writes only rows whose documents
-- differ, and the client that commits it gets a message with their number.
CREATE FUNCTION datalake.pending_to_outbox() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    orders integer[];
    referring integer[];
    sources text;
    written integer;
BEGIN
    WITH pending AS (
        DELETE FROM datalake.cdc_events_pending WHERE txid = txid_current() RETURNING changed, keys),
    keys AS (SELECT DISTINCT changed, unnest(keys) AS key FROM pending),
    tables AS (
        SELECT changed NOT IN ('orders', 'order_details') AS refers, changed, array_agg(key) AS keys
          FROM keys GROUP BY changed)
    SELECT ARRAY(SELECT DISTINCT unnest(keys)::integer FROM tables WHERE NOT refers),
           ARRAY(SELECT datalake.orders_showing(changed, keys) FROM tables WHERE refers),
           (SELECT string_agg('datalake.' || changed, ', ' ORDER BY changed) FROM tables WHERE refers)
      INTO orders, referring, sources;

    IF cardinality(referring) = 0 THEN
        PERFORM datalake.refresh_cdc_events(orders);
        RETURN NULL;
    END IF;
    PERFORM FROM datalake.cdc_events WHERE order_id = ANY (orders || referring) ORDER BY order_id FOR UPDATE;
    PERFORM datalake.refresh_cdc_events(orders);
    written := datalake.refresh_cdc_events(referring, only_changed => true);
    IF written > 100 THEN  -- a warning is written to the server's log too
        RAISE WARNING 'a change of % rewrote % rows of datalake.cdc_events', sources, written
            USING HINT = 'Each rewritten row is a change event. Change several rows in one transaction.';
    ELSIF written > 0 THEN
        RAISE NOTICE 'a change of % rewrote % rows of datalake.cdc_events', sources, written;
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER write_outbox AFTER INSERT ON datalake.cdc_events_pending
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.first) EXECUTE FUNCTION datalake.pending_to_outbox();

-- Functions that record the changes of a statement.

CREATE FUNCTION datalake.orders_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN  -- delete the outbox rows one by one, because TRUNCATE writes no change events
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM datalake.cdc_events));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes('orders', ARRAY(
            SELECT order_id::text FROM old_rows UNION SELECT order_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.order_details_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(
            SELECT order_id::text FROM datalake.cdc_events WHERE order_items <> '[]'));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(SELECT DISTINCT order_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(SELECT DISTINCT order_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes('order_details', ARRAY(
            SELECT order_id::text FROM old_rows UNION SELECT order_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employee_territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM datalake.employees));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
            SELECT employee_id::text FROM old_rows UNION SELECT employee_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

-- Referenced tables: only changes of columns that the documents contain are recorded; an update of a product's stock is
-- not.

CREATE FUNCTION datalake.customers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.customer_id::text FROM new_rows n JOIN old_rows b ON b.customer_id = n.customer_id
         WHERE (b.company_name, b.contact_name, b.contact_title, b.address, b.city, b.region,
                b.postal_code, b.country, b.phone, b.fax)
               IS DISTINCT FROM
               (n.company_name, n.contact_name, n.contact_title, n.address, n.city, n.region,
                n.postal_code, n.country, n.phone, n.fax)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employees_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.employee_id::text FROM new_rows n JOIN old_rows b ON b.employee_id = n.employee_id
         WHERE (b.last_name, b.first_name, b.title, b.hire_date, b.city, b.country,
                b.extension, b.reports_to)
               IS DISTINCT FROM
               (n.last_name, n.first_name, n.title, n.hire_date, n.city, n.country,
                n.extension, n.reports_to)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.territory_id::text FROM new_rows n JOIN old_rows b ON b.territory_id = n.territory_id
         WHERE (b.territory_description, b.region_id)
               IS DISTINCT FROM
               (n.territory_description, n.region_id)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.region_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.region_id::text FROM new_rows n JOIN old_rows b ON b.region_id = n.region_id
         WHERE (b.region_description) IS DISTINCT FROM (n.region_description)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.shippers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.shipper_id::text FROM new_rows n JOIN old_rows b ON b.shipper_id = n.shipper_id
         WHERE (b.company_name, b.phone) IS DISTINCT FROM (n.company_name, n.phone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.products_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.product_id::text FROM new_rows n JOIN old_rows b ON b.product_id = n.product_id
         WHERE (b.product_name, b.quantity_per_unit, b.category_id, b.supplier_id)
               IS DISTINCT FROM
               (n.product_name, n.quantity_per_unit, n.category_id, n.supplier_id)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.categories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.category_id::text FROM new_rows n JOIN old_rows b ON b.category_id = n.category_id
         WHERE (b.category_name, b.description) IS DISTINCT FROM (n.category_name, n.description)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.suppliers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.supplier_id::text FROM new_rows n JOIN old_rows b ON b.supplier_id = n.supplier_id
         WHERE (b.company_name, b.city, b.country)
               IS DISTINCT FROM
               (n.company_name, n.city, n.country)));
    RETURN NULL;
END
$$;

SELECT datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM datalake.orders));

-- A trigger with transition tables handles one kind of statement. Inserts and deletes in referenced tables need no
-- trigger: by the foreign keys, no order refers to such a row at that time.

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.orders
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.orders
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.orders
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.order_details
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.order_details
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.order_details
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.order_details
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.employee_territories
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.employee_territories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.employee_territories
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.employee_territories
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();

CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.customers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.customers_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.employees
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employees_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.territories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.territories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.shippers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.shippers_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.products
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.products_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.region
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.region_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.categories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.categories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.suppliers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.suppliers_to_outbox();

CREATE PUBLICATION cdc_publication FOR TABLE datalake.cdc_events;
