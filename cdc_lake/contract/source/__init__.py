"""The source: epochs, change events, snapshot visibility, stream progress."""
