"""Tokens of SQL text by PostgreSQL's lexical rules; Athena's rules for texts, names and comments are a subset."""

from __future__ import annotations

import re

# The rules of the manual, 4.1. Comments can be nested; a word may contain "$": a$b$c is a name.
# An unterminated quoted text or comment extends to the end of the text. pg_dump encloses a script in \restrict and
# \unrestrict, which only disable psql's backslash commands.
TOKEN = re.compile(
    r"""(?P<blank> \s+ | --[^\n]* | ^\\(?:un)?restrict\b[^\n]* | /\*(?:/\*(?:(?!\*/).)*\*/|(?!/\*|\*/).)*\*/ )
      | (?P<quoted> /\*.* | [eE]'(?:[^'\\]|\\.|'')*'? | '[^']*'? | "[^"]*"?
                  | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z) )
      | (?P<word> [^\W\d][\w$]* )
      | (?P<other> \d[\w.]* | . )""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def one_statement(text: str) -> str:
    """Return a statement without the semicolon and comments at its end, so that it can be a subquery."""
    ends = [token.end() for token in TOKEN.finditer(text) if token.lastgroup != "blank" and token.group() != ";"]
    return text[: max(ends, default=0)].lstrip()


def for_jdbc(sql: str) -> str:
    """Return a query for PostgreSQL's JDBC driver, which reads `?` as a parameter and `??` as the operator `?`."""
    return TOKEN.sub(lambda token: "??" if token.group() == "?" else token.group(), sql)
