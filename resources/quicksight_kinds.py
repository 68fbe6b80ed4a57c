"""The kinds of objects that QuickSight has here: how its API names them, and what their owners may do.

Here: names and lists of actions, as QuickSight's console grants them to an owner
(https://docs.aws.amazon.com/quicksight/latest/APIReference/API_ResourcePermission.html). Not here: calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of object."""

    member: str
    """Its name in requests and answers."""
    further: tuple[str, ...]
    """What an owner may do beside describing, changing and sharing it."""

    @property
    def words(self) -> str:
        """Its name in a sentence, and in boto3's methods with underscores: `data source`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.member).lower()

    @property
    def method(self) -> str:
        """Its name in boto3's methods."""
        return self.words.replace(" ", "_")

    @property
    def path(self) -> str:
        """Its name in ARNs."""
        return self.member.lower()

    @property
    def id(self) -> str:
        """The parameter that holds its id."""
        return f"{self.member}Id"

    @property
    def actions(self) -> tuple[str, ...]:
        """What an owner may do."""
        own = [f"{verb}{self.member}" for verb in ("Describe", "Update", "Delete")]
        shared = [f"{verb}{self.member}Permissions" for verb in ("Describe", "Update")]
        return tuple(f"quicksight:{each}" for each in sorted((*own, *shared, *self.further)))


DATA_SOURCE = Kind("DataSource", ("PassDataSource",))
_INGESTIONS = ("CancelIngestion", "CreateIngestion", "DescribeIngestion", "ListIngestions")
DATA_SET = Kind("DataSet", ("PassDataSet", *_INGESTIONS))
ANALYSIS = Kind("Analysis", ("QueryAnalysis", "RestoreAnalysis"))
DASHBOARD = Kind("Dashboard", ("ListDashboardVersions", "QueryDashboard", "UpdateDashboardPublishedVersion"))
