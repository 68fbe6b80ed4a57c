"""Commands for an AWS account."""
