"""The command line `cdc-lake`: each command parses its options and calls the assets' or the stack's functions."""
