"""Raw objects: their names, the manifests that commit them, and the object store."""
