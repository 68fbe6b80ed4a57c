"""The names of a table's Dagster assets and of its lake tables, for keys, and for messages of jobs and contract."""


def asset_name(pipeline: str, stage: str, table: str, target: str = "") -> str:
    """Return `<pipeline>/<stage>/<table>_<stage>`, or `<pipeline>/lake/<target>/<table>_<target>`.

    Dagster's lineage graph shows only the last part when zoomed out.
    """
    return f"{pipeline}/{stage}/{target}/{table}_{target}" if target else f"{pipeline}/{stage}/{table}_{stage}"


def lake_table_name(table: str, target: str) -> str:
    """Return a lake table's name within its pipeline, in keys of the bucket; identifiers contain no dot."""
    return f"{target}.{table}" if target else table
