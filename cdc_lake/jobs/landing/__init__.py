"""Landing: from a Kafka topic to raw objects."""
