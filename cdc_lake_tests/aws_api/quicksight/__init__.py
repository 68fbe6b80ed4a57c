"""QuickSight: data sources on Athena, datasets of custom SQL, ingestions that run on Trino, analyses and dashboards.

What differs from QuickSight, which draws visuals and keeps rows:

- A dataset has one custom SQL table and one logical table over it, with computed and projected columns. Expressions are
  not evaluated; computed columns are DECIMAL.
- An ingestion runs the SQL and counts its rows. It fails if the SQL's columns do not have the declared types, where
  QuickSight drops the rows whose values do not fit. There are no quotas.
- Definitions of analyses and dashboards are checked for datasets, columns and numbers only (definitions.py).
- Permissions are stored and not enforced.
"""
