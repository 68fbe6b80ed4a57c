"""The one error of this package.

Here: the exception's type only; its messages are written where something goes wrong.
"""


class DashboardError(ValueError):
    """A declaration that can't be used, or a query result that does not fit the declaration."""
