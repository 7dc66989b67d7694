"""Read files of named SQL queries, and check them.

`-- name: verb_noun` begins a query, and the comment lines after it describe it. A query is for both databases, unless
its name is followed by `[sqlite]` or `[postgres]`, which come in pairs, or by `[postgres only]`. For Postgres,
`INDEXED BY` is removed, for SQLite `FOR UPDATE`. A name with `{older|newer}` defines two queries: in the text of the
first, each such choice is replaced by its left side, in the second by its right side. `[{sqlite|postgres}]` is such a
name too, for a query that differs little between the databases.

A larger difference inside a query or a part goes into lines after `-- [sqlite]` or `-- [postgres]`, up to `-- [both]`.

`-- part: name` begins a piece of SQL that queries after it have in common, also those of later files; in these,
`{name}` stands for the piece.

A query names every column that it reads, and where it reads several tables also the table: a newer version may add
columns while this one runs.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from penstock.store.base import DIALECTS, Dialect, QueryMisused, StorageMisconfigured

QUERIES = Path(__file__).with_name("queries")

_NAME = re.compile(
    r"--\s*name:\s*(?P<name>[a-z][a-z0-9]*(_[a-z0-9]+)+)\s*(\[(?P<dialect>sqlite|postgres)(?P<alone> only)?\])?\s*"
)
_PART = re.compile(r"--\s*part:\s*(?P<name>[a-z][a-z0-9_]*)\s*")
_SECTION = re.compile(r"\s*--\s*\[(?P<dialect>sqlite|postgres|both)\]\s*")
_PART_USED = re.compile(r"\{([a-z]\w*)\}")
_CHOICE = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")

# Tokens that may contain a colon or a semicolon come first, so that the last two groups match only real ones.
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?\*/ )
    | (?P<quoted>  \b[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<cast>    :: )
    | :(?P<parameter> [A-Za-z_]\w* )
    | (?P<end>     ; )
    """,
    re.VERBOSE | re.DOTALL,
)
_INSERT = re.compile(
    r"(?P<insert>INSERT INTO (?P<table>\w+) \((?P<columns>[\w,\s]+)\))\s+"
    r"VALUES \((?P<values>[$\w',\s]+)\)(?P<rest>[^$]*)",
    re.DOTALL,
)
_WRITES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b|\s*WITH\b.*\b(INSERT\s+INTO|DELETE\s+FROM|(?<!FOR\s)(?<!KEY\s)UPDATE)\s",
    re.IGNORECASE | re.DOTALL,
)
# What one of the databases does not understand and does not need: SQLite has one writer and locks no rows.
_FOREIGN: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(r"\s+FOR\s+(NO\s+KEY\s+)?UPDATE(\s+SKIP\s+LOCKED)?", re.IGNORECASE),
    "postgres": re.compile(r"\s+INDEXED\s+BY\s+\w+", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Query:
    """One statement in the syntax of its database driver."""

    name: str
    description: str
    sql: str
    parameters: tuple[str, ...]  # in the order of their first use
    writes: bool
    many: "Query | None" = None  # for Postgres: writes many rows, which are given as a JSON array
    accepts: frozenset[str] = field(init=False)
    # From values by name to the values in the order of `parameters`.
    in_order: Callable[[dict[str, Any]], Sequence[Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "accepts", frozenset(self.parameters))
        in_order = itemgetter(*self.parameters) if len(self.parameters) > 1 else lambda values: [*values.values()]
        object.__setattr__(self, "in_order", in_order)

    @property
    def returns(self) -> bool:
        """Whether it returns rows."""
        return not self.writes or "RETURNING" in self.sql

    def check_many(self, rows: Sequence[dict[str, Any]]) -> None:
        """Raise QueryMisused unless each set of values can be written with this query."""
        if not self.writes:
            raise self.only_reads()
        for values in rows:
            if values.keys() != self.accepts:
                raise self.wrong_values(values)

    def wrong_values(self, values: dict[str, Any]) -> QueryMisused:
        """The error for values that are not the query's parameters."""
        missing = sorted(self.accepts - values.keys())
        unknown = sorted(values.keys() - self.accepts)
        return QueryMisused(f"{self.name}: missing parameters {missing}, unknown parameters {unknown}.")

    def only_reads(self) -> QueryMisused:
        """The error for a reading query that is used to write."""
        return QueryMisused(f"{self.name} changes nothing; use `one` or `all`.")


class Queries(dict[str, Query]):
    """The queries of one database by name. An unknown name raises QueryMisused."""

    def __missing__(self, name: str) -> Query:
        raise QueryMisused(f"There is no query named {name}.")

    def get_reading(self, name: str) -> Query:
        """A query for use outside a transaction. Raises QueryMisused if it writes."""
        query = self[name]
        if query.writes:
            raise QueryMisused(f"{name} writes, so it needs a transaction.")
        return query


class QueryFile:
    """All queries, for each database. A process uses one of them, so the queries for the other are not made."""

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        parts: dict[str, str] = {}
        self._blocks = [(source, *block) for source, text in files for block in _blocks(text, source, parts)]

    @cached_property
    def sqlite(self) -> Queries:
        return self._queries_for("sqlite")

    @cached_property
    def postgres(self) -> Queries:
        return self._queries_for("postgres")

    def _queries_for(self, dialect: Dialect) -> Queries:
        queries = Queries()
        for source, line, named, body in self._blocks:
            name = named["name"]
            where = f"{source}:{line}: {name}"
            if named["dialect"] not in (None, dialect):
                continue
            if name in queries:
                raise StorageMisconfigured(f"{where} is defined twice for {dialect}.")
            queries[name] = _query(where, name, _lines_for(dialect, body), dialect)
        return queries

    def check(self) -> Self:
        """Return the queries. Raises StorageMisconfigured if one is malformed, or not the same for both databases."""
        found: dict[Dialect, Queries] = {"sqlite": self.sqlite, "postgres": self.postgres}
        for name in sorted({named["name"] for _, _, named, _ in self._blocks if not named["alone"]}):
            _check_pair(name, found)
        return self


@cache
def package_queries() -> QueryFile:
    """The queries of this package, whose files are read once in a process. A test checks them, not each start."""
    return read_queries(QUERIES)


def read_queries(folder: Path) -> QueryFile:
    """Read all queries of a folder."""
    return QueryFile((path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql")))


def parse_queries(text: str, source: str = "queries") -> QueryFile:
    """Read queries from a text; errors name the `source`. Raises StorageMisconfigured if one is malformed."""
    return QueryFile([(source, text)]).check()


def _blocks(text: str, source: str, parts: dict[str, str]) -> Iterator[tuple[int, re.Match[str], list[str]]]:
    """For each query the number of its `-- name:` line, that line, and the lines up to the next, with parts put in. The
    parts of the text are added to those of the files before.
    """
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if re.match(r"--\s*(name|part)\b", line)]
    for number, line in enumerate(lines[: min(starts, default=len(lines))], 1):
        if line.strip() and not line.startswith("--"):
            raise StorageMisconfigured(f"{source}:{number}: SQL before the first `-- name:` line.")
    for start, end in pairwise([*starts, len(lines)]):
        if part := _PART.fullmatch(lines[start]):
            piece = [line for line in lines[start + 1 : end] if _SECTION.fullmatch(line) or not line.startswith("--")]
            parts[part["name"]] = "\n".join(_with_parts(f"{source}:{start + 1}", line, parts) for line in piece)
            continue
        for heading, *body in _versions(lines[start:end]):
            named = _NAME.fullmatch(heading)
            if named is None:
                raise StorageMisconfigured(f"{source}:{start + 1}: not of the form `-- name: verb_noun [dialect]`.")
            yield start + 1, named, [_with_parts(f"{source}:{start + 1}", line, parts) for line in body]


def _with_parts(where: str, line: str, parts: Mapping[str, str]) -> str:
    """A line with the pieces of SQL in the places of their names."""

    def part(used: re.Match[str]) -> str:
        if used[1] not in parts:
            raise StorageMisconfigured(f"{where}: there is no part named {used[1]} before it.")
        return parts[used[1]]

    return _PART_USED.sub(part, line)


def _versions(block: list[str]) -> list[list[str]]:
    """The block itself, or the two blocks that a name with a choice stands for."""
    if not _CHOICE.search(block[0]):
        return [block]
    return [[_CHOICE.sub(rf"\g<{side}>", line) for line in block] for side in (1, 2)]


def _lines_for(dialect: Dialect, body: Iterable[str]) -> list[str]:
    """The lines of a query without those that are for the other database."""
    found: list[str] = []
    section = "both"
    for line in "\n".join(body).splitlines():
        if marked := _SECTION.fullmatch(line):
            section = marked["dialect"]
        elif section in ("both", dialect):
            found.append(line)
    return found


def _query(where: str, name: str, body: list[str], dialect: Dialect) -> Query:
    comments = next((at for at, line in enumerate(body) if not line.startswith("--")), len(body))
    description = " ".join(line.removeprefix("--").strip() for line in body[:comments]).strip()
    if not description:
        raise StorageMisconfigured(f"{where} needs a description.")
    sql, parameters = _translate(where, "\n".join(body[comments:]), dialect)
    many = _many(name, description, sql, parameters) if dialect == "postgres" else None
    return Query(name, description, sql, parameters, bool(_WRITES.match(_blank(sql))), many)


def _many(name: str, description: str, sql: str, parameters: tuple[str, ...]) -> Query | None:
    """The version for many rows of a query that inserts one, if each parameter has the name of a column."""
    found = _INSERT.fullmatch(sql)
    if found is None or not set(parameters) <= set(re.findall(r"\w+", found["columns"])):
        return None
    values = re.sub(r"\$(\d+)", lambda number: parameters[int(number[1]) - 1], found["values"])
    rows = f"json_populate_recordset(CAST(NULL AS {found['table']}), CAST($1 AS json))"
    # From a file of this package.
    statement = f"{found['insert']} SELECT {values} FROM {rows} {found['rest']}"  # noqa: S608
    return Query(name, description, statement.strip(), ("rows",), writes=True)


def _blank(sql: str) -> str:
    """The statement without quoted text and comments, and with single spaces."""
    return re.sub(r"\s+", " ", _TOKEN.sub(" ", sql))


def _translate(where: str, text: str, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """SQL in the syntax of the driver, without comments, and the names of its parameters."""
    pieces: list[str] = []
    parameters: dict[str, int] = {}  # numbered by their first use
    position = 0
    ended = False
    for token in _TOKEN.finditer(text):
        between = text[position : token.start()]
        if ended and (between.strip() or not token["comment"]):
            raise StorageMisconfigured(f"{where} has more than one statement.")
        pieces.append(_FOREIGN[dialect].sub("", between))
        position = token.end()
        ended = ended or token["end"] is not None
        if token["parameter"]:
            number = parameters.setdefault(token["parameter"], len(parameters) + 1)
            pieces.append(f"${number}" if dialect == "postgres" else token[0])
        else:
            pieces.append(" " if token["comment"] or token["end"] else token[0])
    if ended and text[position:].strip():
        raise StorageMisconfigured(f"{where} has more than one statement.")
    sql = "".join([*pieces, _FOREIGN[dialect].sub("", text[position:])]).strip()
    if not sql:
        raise StorageMisconfigured(f"{where} has no SQL.")
    return sql, tuple(parameters)


def _check_pair(name: str, found: dict[Dialect, Queries]) -> None:
    for dialect in DIALECTS:
        if name not in found[dialect]:
            raise StorageMisconfigured(f"The query {name} does not exist for {dialect}.")
    sqlite = found["sqlite"][name]
    postgres = found["postgres"][name]
    if sqlite.accepts != postgres.accepts or sqlite.writes != postgres.writes:
        raise StorageMisconfigured(f"The two versions of {name} differ in parameters or in what they do.")
