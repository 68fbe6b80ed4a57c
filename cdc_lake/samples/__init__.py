"""The sample databases: their data, the outbox of Northwind, and the loaders."""
