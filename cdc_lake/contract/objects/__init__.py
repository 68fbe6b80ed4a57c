"""The object store, the names of objects, and what is stored in them: raw objects, manifests, dead letters."""
