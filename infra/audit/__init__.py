"""`make audit`: whether what is locked has known vulnerabilities."""
