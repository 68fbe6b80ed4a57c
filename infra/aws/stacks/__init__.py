"""The stacks of the CDK application."""
