"""The demo: Northwind from an empty database to the dashboard, the two stories, and the counts that prove it."""
