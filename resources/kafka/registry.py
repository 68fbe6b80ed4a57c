"""The schema registry of a cluster's Avro records, as a Dagster resource."""

import dagster as dg
from pydantic import Field

from resources.aws.secrets import DatabaseSecret


class Registry(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A registry with Confluent's API, which Apicurio Registry has too."""

    url: str = Field(description="The API's URL; Apicurio Registry: http://HOST:PORT/apis/ccompat/v7.")
    authorization: str = Field(default="", repr=False, description="The header Authorization; empty: no header.")
    secret: DatabaseSecret | None = Field(
        default=None, description="A secret whose password is the header, instead of `authorization`."
    )

    def header(self) -> str:
        """Return the Authorization header, empty if there is none. Raises what DatabaseSecret.login() raises."""
        return (self.secret.login().password if self.secret is not None else self.authorization).strip()
