"""The sample database: its data, the outbox from which its changes are captured, and the loader."""
