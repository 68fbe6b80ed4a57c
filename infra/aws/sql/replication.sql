-- Creates the database user of Debezium and Dagster. Run it once after the deployment of the database stack:
--
--   read -rs CDC_LAKE_PASSWORD && export CDC_LAKE_PASSWORD
--   psql "host=… dbname=… user=postgres sslmode=require" -v ON_ERROR_STOP=1 -v schema=datalake -f replication.sql
--
-- The password is that of the secret `cdc-lake-<environment>/source/replication` (docs/infrastructure.md has the commands).
-- It is passed in the environment, because other users can see command lines. The script can be repeated: it sets the
-- password again.

\getenv password CDC_LAKE_PASSWORD
\if :{?password}
\else
DO $$ BEGIN
    RAISE EXCEPTION 'Cannot create user cdc_lake: CDC_LAKE_PASSWORD is not set. Nothing was changed. Export the password from the secret, then run this again.';
END $$;
\endif

-- cdc_lake becomes a member of the tables' owners, so the admin must not own tables.
SELECT count(*) > 0 AS has_own, coalesce(string_agg(tablename, ', ' ORDER BY tablename), '') AS own
FROM pg_tables WHERE schemaname = :'schema' AND tableowner = current_user \gset
\if :has_own
SELECT set_config('cdc_lake.own', :'own', false), set_config('cdc_lake.schema', :'schema', false) \g /dev/null
DO $$ BEGIN
    RAISE EXCEPTION 'Cannot grant the tables of schema % to cdc_lake: the admin owns %. Nothing was changed. Run ALTER TABLE … OWNER TO a role of the application, then run this again.',
        current_setting('cdc_lake.schema'), current_setting('cdc_lake.own');
END $$;
\endif

SELECT 'CREATE ROLE cdc_lake LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cdc_lake') \gexec

-- The next statement contains the password. Statement logging is turned off for this session if the user may do so. On
-- RDS that can be denied; then `log_statement` has to be `none`, as this project's parameter group sets it.
SELECT set_config('log_statement', 'none', false) WHERE has_parameter_privilege('log_statement', 'SET') \g /dev/null
ALTER ROLE cdc_lake WITH LOGIN PASSWORD :'password';

-- On RDS and Aurora, the attribute REPLICATION cannot be set; this role replaces it.
GRANT rds_replication TO cdc_lake;

-- Debezium reads the snapshot. Dagster's `source` asset creates publication, heartbeat table and triggers; publications
-- and triggers require ownership of the tables, so cdc_lake becomes a member of the owning roles. The schema is not
-- created here: cdc_lake may create it (`cdc-lake load` does, and treats a schema that it did not create as another
-- application's). If cdc_lake owns the schema, it needs no grant, and the admin could not give one.
SELECT format('GRANT CREATE ON DATABASE %I TO cdc_lake', current_database()) \gexec
SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO cdc_lake', nspname)
FROM pg_namespace WHERE nspname = :'schema' AND pg_get_userbyid(nspowner) <> 'cdc_lake' \gexec
SELECT format('GRANT %I TO cdc_lake', owner) FROM (
    SELECT DISTINCT tableowner AS owner FROM pg_tables WHERE schemaname = :'schema' AND tableowner <> 'cdc_lake'
) AS owners \gexec
