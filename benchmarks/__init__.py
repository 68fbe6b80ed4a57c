"""Programs that measure cdc-lake, beside other systems where there are some. `python -m benchmarks` runs them all."""
