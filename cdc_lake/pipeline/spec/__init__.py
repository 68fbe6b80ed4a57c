"""The fields of a pipeline's YAML, validated when the definitions load. spec/pipeline.py is the whole."""
