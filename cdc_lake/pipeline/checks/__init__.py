"""Asset checks: light ones run with each materialisation, heavy ones on a schedule."""
