"""The demo: Northwind from an empty database to the dashboard, three changes, and the checks of the results."""
