"""Roles, policies and security groups of the CDK application."""
