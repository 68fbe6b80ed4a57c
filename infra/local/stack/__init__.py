"""The embedded stack: its state folder, processes, ports, and starting and stopping its components."""
