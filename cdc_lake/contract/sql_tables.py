"""The tables that a statement in SQL reads."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope


def tables(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables of a parsed statement, without references to the names that its WITH clauses define.

    Names are compared as they are written: callers convert them to lower case before.
    """
    if not isinstance(tree, exp.Query):
        return list(tree.find_all(exp.Table))
    sources = [source for scope in traverse_scope(tree) for source in scope.sources.values()]
    return list({id(source): source for source in sources if isinstance(source, exp.Table)}.values())


def lower_names(tree: exp.Expr) -> exp.Expr:
    """Convert the names of tables and their aliases to lower case, as the catalog has them; returns the tree."""
    for node in tree.find_all(exp.Table, exp.TableAlias):
        for part in ("this", "db"):
            if isinstance(name := node.args.get(part), exp.Identifier):
                name.set("this", name.name.lower())
    return tree
