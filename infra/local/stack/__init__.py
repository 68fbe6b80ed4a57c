"""The local stack: its state folder, processes, ports, and the start and stop of its components."""
