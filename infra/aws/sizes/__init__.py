"""Sizes of an environment: sizes.yaml and the models that validate it."""
