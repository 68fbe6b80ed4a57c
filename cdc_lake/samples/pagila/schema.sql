-- The tables of Pagila as its newest version has them, without rentals, views, reporting functions, and the columns of
-- random UUIDs. Run with search_path set to the schema that receives them.

CREATE DOMAIN year AS integer CHECK (VALUE BETWEEN 1901 AND 2155);
CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');

CREATE FUNCTION last_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.last_update = CURRENT_TIMESTAMP;
    RETURN NEW;
END $$;

CREATE TABLE actor (
    actor_id    serial PRIMARY KEY,
    first_name  text NOT NULL,
    last_name   text NOT NULL,
    last_update timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_actor_last_name ON actor (last_name);

CREATE TABLE category (
    category_id serial PRIMARY KEY,
    name        text NOT NULL,
    last_update timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE language (
    language_id serial PRIMARY KEY,
    name        text NOT NULL,
    last_update timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE film (
    film_id              serial PRIMARY KEY,
    title                text NOT NULL,
    description          text,
    release_year         year,
    language_id          integer NOT NULL REFERENCES language ON UPDATE CASCADE ON DELETE RESTRICT,
    original_language_id integer REFERENCES language ON UPDATE CASCADE ON DELETE RESTRICT,
    rental_duration      smallint NOT NULL DEFAULT 3,
    rental_rate          numeric(4,2) NOT NULL DEFAULT 4.99,
    length               smallint,
    replacement_cost     numeric(5,2) NOT NULL DEFAULT 19.99,
    -- NOT NULL, unlike the published column: Apicurio's converter writes the default of a nullable column instead of NULL.
    rating               mpaa_rating NOT NULL DEFAULT 'G',
    last_update          timestamptz NOT NULL DEFAULT now(),
    special_features     text[],
    fulltext             tsvector NOT NULL
);
-- Virtual columns exist since PostgreSQL 18. An older server has no such column: a stored one would be captured.
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 180000 THEN
        EXECUTE 'ALTER TABLE film ADD COLUMN length_hours numeric(4,2) '
                'GENERATED ALWAYS AS (round(length / 60.0, 2)) VIRTUAL';
    END IF;
END $$;
CREATE INDEX film_fulltext_idx ON film USING gist (fulltext);
CREATE INDEX idx_fk_language_id ON film (language_id);
CREATE INDEX idx_fk_original_language_id ON film (original_language_id);
CREATE INDEX idx_title ON film (title);

CREATE TABLE film_actor (
    actor_id    integer NOT NULL REFERENCES actor ON UPDATE CASCADE ON DELETE RESTRICT,
    film_id     integer NOT NULL REFERENCES film ON UPDATE CASCADE ON DELETE RESTRICT,
    last_update timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (actor_id, film_id)
);
CREATE INDEX idx_fk_film_id ON film_actor (film_id);

CREATE TABLE film_category (
    film_id     integer NOT NULL REFERENCES film ON UPDATE CASCADE ON DELETE RESTRICT,
    category_id integer NOT NULL REFERENCES category ON UPDATE CASCADE ON DELETE RESTRICT,
    last_update timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (film_id, category_id)
);

CREATE TABLE country (
    country_id  serial PRIMARY KEY,
    country     text NOT NULL,
    last_update timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE city (
    city_id     serial PRIMARY KEY,
    city        text NOT NULL,
    country_id  integer NOT NULL REFERENCES country ON UPDATE CASCADE ON DELETE RESTRICT,
    last_update timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_fk_country_id ON city (country_id);

CREATE TABLE address (
    address_id  serial PRIMARY KEY,
    address     text NOT NULL,
    address2    text,
    district    text NOT NULL,
    city_id     integer NOT NULL REFERENCES city ON UPDATE CASCADE ON DELETE RESTRICT,
    postal_code text,
    phone       text NOT NULL,
    last_update timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_fk_city_id ON address (city_id);

-- No foreign key of the manager: a store and its staff refer to each other.
CREATE TABLE store (
    store_id         serial PRIMARY KEY,
    manager_staff_id integer NOT NULL UNIQUE,
    address_id       integer NOT NULL REFERENCES address ON UPDATE CASCADE ON DELETE RESTRICT,
    last_update      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE staff (
    staff_id    serial PRIMARY KEY,
    first_name  text NOT NULL,
    last_name   text NOT NULL,
    address_id  integer NOT NULL REFERENCES address ON UPDATE CASCADE ON DELETE RESTRICT,
    email       text,
    store_id    integer NOT NULL REFERENCES store,
    active      boolean NOT NULL DEFAULT true,
    username    text NOT NULL,
    password    text,
    last_update timestamptz NOT NULL DEFAULT now(),
    picture     bytea
);

CREATE TABLE customer (
    customer_id serial PRIMARY KEY,
    store_id    integer NOT NULL REFERENCES store ON UPDATE CASCADE ON DELETE RESTRICT,
    first_name  text NOT NULL,
    last_name   text NOT NULL,
    email       text,
    address_id  integer NOT NULL REFERENCES address ON UPDATE CASCADE ON DELETE RESTRICT,
    activebool  boolean NOT NULL DEFAULT true,
    create_date date NOT NULL DEFAULT CURRENT_DATE,
    last_update timestamptz DEFAULT now(),
    active      integer
);
CREATE INDEX idx_fk_address_id ON customer (address_id);
CREATE INDEX idx_fk_store_id ON customer (store_id);
CREATE INDEX idx_last_name ON customer (last_name);

CREATE TABLE inventory (
    inventory_id serial PRIMARY KEY,
    film_id      integer NOT NULL REFERENCES film ON UPDATE CASCADE ON DELETE RESTRICT,
    store_id     integer NOT NULL REFERENCES store ON UPDATE CASCADE ON DELETE RESTRICT,
    last_update  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_store_id_film_id ON inventory (store_id, film_id);

-- Partitioned by month, which no pipeline captures. A rental's number has no foreign key: rentals are left out.
CREATE TABLE payment (
    payment_id   serial,
    customer_id  integer NOT NULL REFERENCES customer,
    staff_id     integer NOT NULL REFERENCES staff,
    rental_id    integer NOT NULL,
    amount       numeric(5,2) NOT NULL,
    payment_date timestamptz NOT NULL,
    PRIMARY KEY (payment_date, payment_id)
) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_p2022_01 PARTITION OF payment FOR VALUES FROM ('2022-01-01 00:00Z') TO ('2022-02-01 00:00Z');
CREATE TABLE payment_p2022_02 PARTITION OF payment FOR VALUES FROM ('2022-02-01 00:00Z') TO ('2022-03-01 00:00Z');
CREATE TABLE payment_p2022_03 PARTITION OF payment FOR VALUES FROM ('2022-03-01 00:00Z') TO ('2022-04-01 00:00Z');

CREATE TRIGGER film_fulltext_trigger BEFORE INSERT OR UPDATE ON film
    FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
CREATE TRIGGER last_updated BEFORE UPDATE ON actor FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON address FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON category FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON city FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON country FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON film FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON film_actor FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON film_category FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON inventory FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON language FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON staff FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON store FOR EACH ROW EXECUTE FUNCTION last_updated();
