"""One module a stage: what materialising it does and reports."""
