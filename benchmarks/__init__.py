"""Programs that measure cdc-lake, some of them compared with other systems. `python -m benchmarks` runs them all."""
