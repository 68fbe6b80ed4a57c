"""The command line `cdc-lake`: thin commands over what the assets and the stack do themselves."""
