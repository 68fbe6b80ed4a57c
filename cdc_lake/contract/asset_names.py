"""The names of a table's Dagster assets and lake tables, for asset keys, object keys and messages."""


def asset_name(pipeline: str, stage: str, table: str, target: str = "") -> str:
    """Return `<pipeline>/<stage>/<table>_<stage>`, or `<pipeline>/lake/<target>/<table>_<target>`.

    Dagster's lineage graph shows only the last part when zoomed out.
    """
    return f"{pipeline}/{stage}/{target}/{table}_{target}" if target else f"{pipeline}/{stage}/{table}_{stage}"


def lake_table_name(table: str, target: str) -> str:
    """Return a lake table's name within its pipeline, as object keys contain it: `<table>` or `<target>.<table>`.

    Names of targets and tables contain no dot, so the result is unique.
    """
    return f"{target}.{table}" if target else table
