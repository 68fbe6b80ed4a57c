"""Whether the stream from the source is complete: slot, stored offset, heartbeats, topic, schema."""
