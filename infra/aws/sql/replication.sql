-- The database's user of Debezium and Dagster, run once by a person after the database stack:
--
--   read -rs CDC_LAKE_PASSWORD && export CDC_LAKE_PASSWORD
--   psql "host=… dbname=… user=postgres sslmode=require" -v ON_ERROR_STOP=1 -v schema=datalake -f replication.sql
--
-- The password is that of the secret `cdc-lake-<environment>/source/replication` (docs/infrastructure.md has the commands);
-- it comes by the environment, since command lines can be seen. It can be repeated: it sets the password anew.

\getenv password CDC_LAKE_PASSWORD
\if :{?password}
\else
DO $$ BEGIN
    RAISE EXCEPTION 'CDC_LAKE_PASSWORD is not set: nothing was changed; export the password that is in the secret, then run this again';
END $$;
\endif

-- cdc_lake will be a member of the tables' owners, and must not be one of the admin.
SELECT count(*) > 0 AS has_own, coalesce(string_agg(tablename, ', ' ORDER BY tablename), '') AS own
FROM pg_tables WHERE schemaname = :'schema' AND tableowner = current_user \gset
\if :has_own
SELECT set_config('cdc_lake.own', :'own', false), set_config('cdc_lake.schema', :'schema', false) \g /dev/null
DO $$ BEGIN
    RAISE EXCEPTION 'tables of schema % belong to the admin (%): nothing was changed; ALTER TABLE … OWNER TO a role of the application, then run this again',
        current_setting('cdc_lake.schema'), current_setting('cdc_lake.own');
END $$;
\endif

SELECT 'CREATE ROLE cdc_lake LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cdc_lake') \gexec

-- The next statement has the password in it. A server that logs statements is told not to log this session's where the
-- user may say so; on RDS that may not be, and then `log_statement` has to be what this project leaves it at: none.
SELECT set_config('log_statement', 'none', false) WHERE has_parameter_privilege('log_statement', 'SET') \g /dev/null
ALTER ROLE cdc_lake WITH LOGIN PASSWORD :'password';

-- On RDS and Aurora nobody may say REPLICATION: this role stands for it.
GRANT rds_replication TO cdc_lake;

-- Debezium reads the snapshot. Dagster's `source` asset makes publication, heartbeat table and triggers: for a
-- publication and a trigger it has to own the tables, so it is given the role that does. No schema is made: where there
-- is none, cdc_lake may make it (`cdc-lake load` does, and takes one that it did not make for somebody else's); where it
-- is cdc_lake's own, it needs no grant, and the admin could give none.
SELECT format('GRANT CREATE ON DATABASE %I TO cdc_lake', current_database()) \gexec
SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO cdc_lake', nspname)
FROM pg_namespace WHERE nspname = :'schema' AND pg_get_userbyid(nspowner) <> 'cdc_lake' \gexec
SELECT format('GRANT %I TO cdc_lake', owner) FROM (
    SELECT DISTINCT tableowner AS owner FROM pg_tables WHERE schemaname = :'schema' AND tableowner <> 'cdc_lake'
) AS owners \gexec
