"""What the AWS resources share: clients, errors, identity, secrets, metrics, queues."""
