"""Files of named SQL: how they are read, and what is refused."""

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.base import QueryMisused, StorageMisconfigured
from penstock.store.queries import package_queries, parse_queries, read_queries


def test_one_text_is_for_both_databases() -> None:
    found = parse_queries("-- name: get_thing\n-- One thing,\n-- by its id.\nSELECT a FROM t WHERE id = :id;\n")
    assert found.sqlite["get_thing"].sql == "SELECT a FROM t WHERE id = :id"
    assert found.postgres["get_thing"].sql == "SELECT a FROM t WHERE id = $1"
    for query in (found.sqlite["get_thing"], found.postgres["get_thing"]):
        assert query.description == "One thing, by its id."
        assert query.accepts == {"id"}
        assert not query.writes


def test_a_query_may_differ_between_databases() -> None:
    found = parse_queries(
        "-- name: claim_thing [sqlite]\n-- Take one.\nUPDATE t SET a = :a\n"
        "-- name: claim_thing [postgres]\n-- Take one, past those being taken.\nUPDATE t SET a = :a WHERE id IN "
        "(SELECT id FROM t FOR UPDATE SKIP LOCKED)"
    )
    assert "SKIP" not in found.sqlite["claim_thing"].sql
    assert "SKIP" in found.postgres["claim_thing"].sql


def test_lines_for_one_database_are_left_out_for_the_other_also_in_parts() -> None:
    text = "-- part: now\n-- [sqlite]\nunixepoch()\n-- [postgres]\nnow()\n-- [both]\n-- part: later\n    {now}\n+ 1\n"
    text += "-- name: get_time\n-- The time.\nSELECT\n{later}\n-- [sqlite]\nLIMIT 1\n-- [both]\n;\n"
    found = parse_queries(text)
    assert found.sqlite["get_time"].sql.split() == ["SELECT", "unixepoch()", "+", "1", "LIMIT", "1"]
    assert found.postgres["get_time"].sql.split() == ["SELECT", "now()", "+", "1"]


def test_indexed_by_is_removed_for_postgres() -> None:
    text = "-- name: get_thing\n-- One.\nSELECT ' INDEXED BY x' FROM t INDEXED BY t_by_a\nWHERE a = :a;\n"
    found = parse_queries(text)
    assert found.sqlite["get_thing"].sql == "SELECT ' INDEXED BY x' FROM t INDEXED BY t_by_a\nWHERE a = :a"
    assert found.postgres["get_thing"].sql == "SELECT ' INDEXED BY x' FROM t\nWHERE a = $1"


def test_a_choice_in_a_name_defines_two_queries() -> None:
    text = "-- name: list_{older|newer}_things\n-- {Down|Up}.\nSELECT '{}' FROM t ORDER BY id {DESC|ASC};\n"
    found = parse_queries(text + "-- name: get_thing\n-- Not a choice.\nSELECT '{a|b}'").sqlite
    assert {name: (query.description, query.sql) for name, query in found.items()} == {
        "list_older_things": ("Down.", "SELECT '{}' FROM t ORDER BY id DESC"),
        "list_newer_things": ("Up.", "SELECT '{}' FROM t ORDER BY id ASC"),
        "get_thing": ("Not a choice.", "SELECT '{a|b}'"),
    }


# SQL as written, as psycopg gets it, and its parameters: cases that a naive translation would get wrong.
@pytest.mark.parametrize(
    ("written", "expected", "accepts"),
    [
        ("SELECT ':x', \":y\", :z", "SELECT ':x', \":y\", $1", {"z"}),
        ("SELECT 'it''s :x' || :z", "SELECT 'it''s :x' || $1", {"z"}),
        ("SELECT :a::bigint, '1'::text", "SELECT $1::bigint, '1'::text", {"a"}),
        ("SELECT :a -- not :b\n, :c", "SELECT $1  \n, $2", {"a", "c"}),
        ("SELECT :a /* :b\n :c */ + 1", "SELECT $1   + 1", {"a"}),
        ("SELECT 5 % 2, '100%', :a", "SELECT 5 % 2, '100%', $1", {"a"}),
        ("SELECT E'\\':x', :a", "SELECT E'\\':x', $1", {"a"}),
        ("SELECT $$ :x ' $$, $t$ :y $$ $t$, :a", "SELECT $$ :x ' $$, $t$ :y $$ $t$, $1", {"a"}),
        ("SELECT :a, :a, :a_1B", "SELECT $1, $1, $2", {"a", "a_1B"}),
        ("SELECT ';' ; -- the end; really\n", "SELECT ';'", set()),
        ("SELECT 'a -- b', :c", "SELECT 'a -- b', $1", {"c"}),
        ("SELECT 'a /* b', :c, '*/'", "SELECT 'a /* b', $1, '*/'", {"c"}),
    ],
)
def test_only_real_parameters_are_found(written: str, expected: str, accepts: set[str]) -> None:
    query = parse_queries(f"-- name: get_thing\n-- A thing.\n{written}").postgres["get_thing"]
    assert query.sql == expected
    assert query.accepts == accepts


def test_sqlite_gets_the_same_parameters() -> None:
    query = parse_queries("-- name: get_thing\n-- A thing.\nSELECT ':x' AS a, :y AS b -- :z").sqlite["get_thing"]
    assert apsw.Connection("").execute(query.sql, {"y": 2}).fetchall() == [(":x", 2)]
    assert query.accepts == {"y"}


# Pieces of SQL that SQLite accepts too, so that its own parser can say which parameters there are.
PIECES = [
    ":a",
    ":b_2",
    "'x :c'",
    "'it''s :d'",
    '":e"',
    "-- :f ' \"\n",
    "/* :g\n ' */",
    "1",
    "'%'",
    "'--'",
    "'/*'",
    "';'",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8))
def test_sqlite_agrees_on_what_a_parameter_is(pieces: list[str]) -> None:
    text = "SELECT 0" + "".join(f"\n{'' if piece[0] in '-/' else ', '}{piece}" for piece in pieces)
    text = text.replace('":e"', '1 AS ":e"')
    found = parse_queries(f"-- name: get_thing\n-- It.\n{text}\n;")
    assert found.sqlite["get_thing"].accepts == found.postgres["get_thing"].accepts == names_by_sqlite(text)
    assert names_by_sqlite(found.sqlite["get_thing"].sql) == names_by_sqlite(text)


def names_by_sqlite(text: str) -> set[str]:
    cursor = apsw.Connection("").cursor()
    names: set[str] = set()

    def look(cursor: apsw.Cursor, *_: object) -> bool:
        names.update(name for name in cursor.bindings_names if name)
        return True

    cursor.exec_trace = look
    cursor.execute(text, dict.fromkeys(["a", "b_2", "c", "d", "e", "f", "g"], 1)).fetchall()
    return names


@pytest.mark.parametrize(
    ("written", "writes"),
    [
        ("SELECT a FROM t", False),
        ("SELECT a FROM t FOR UPDATE", False),
        ("SELECT 'DELETE FROM t'", False),
        ("insert into t (a) values (1)", True),
        ("UPDATE t SET a = 1 RETURNING a", True),
        ("DELETE FROM t", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", False),
        ("WITH x AS (SELECT replace('a', 'b', 'c')) SELECT * FROM x FOR NO KEY UPDATE", False),
        ("WITH x AS (SELECT a FROM t FOR\n UPDATE ) SELECT a FROM x", False),
        ("WITH x AS (SELECT 1)\nUPDATE t SET a = 1", True),
        ("WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x", True),
        ("-- a remark\nWITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", True),
    ],
)
def test_writing_queries_are_recognized(written: str, writes: bool) -> None:
    assert parse_queries(f"-- name: do_thing\n-- A thing.\n\n{written}").sqlite["do_thing"].writes is writes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- name: get_thing\nSELECT 1", "queries:1: get_thing needs a description"),
        ("-- name: get_thing\n-- \nSELECT 1", "queries:1: get_thing needs a description"),
        ("-- name: get_thing\n-- A thing.\n", "queries:1: get_thing has no SQL"),
        ("-- name: get_thing\n-- A thing.\nSELECT 1; SELECT 2", "get_thing has more than one statement"),
        ("-- name: get_thing\n-- A thing.\nSELECT 1; 'x'", "get_thing has more than one statement"),
        ("-- name: get_thing\n-- A thing.\nSELECT 1;;", "get_thing has more than one statement"),
        ("-- name: Thing\n-- A thing.\nSELECT 1", "queries:1: not of the form"),
        ("-- name get_thing\n-- A thing.\nSELECT 1", "queries:1: not of the form"),
        ("-- name: get_thing [mysql]\n-- A thing.\nSELECT 1", "queries:1: not of the form"),
        ("-- A heading.\n\nSELECT 1", "queries:3: SQL before the first"),
        ("-- name: get_thing\n-- A thing.\nSELECT {what}", "queries:1: there is no part named what before it"),
        ("-- name: get_thing [sqlite]\n-- A thing.\nSELECT 1", "get_thing does not exist for postgres"),
        ("-- name: get_thing [postgres]\n-- A thing.\nSELECT 1", "get_thing does not exist for sqlite"),
        (
            "-- name: get_thing\n-- A thing.\nSELECT 1\n-- name: get_thing\n-- Again.\nSELECT 1",
            "queries:4: get_thing is defined twice for sqlite",
        ),
        (
            "-- name: get_thing\n-- A thing.\nSELECT 1\n-- name: get_thing [postgres]\n-- Again.\nSELECT 1",
            "queries:4: get_thing is defined twice for postgres",
        ),
        (
            "-- name: get_thing [sqlite]\n-- A thing.\nSELECT :a\n-- name: get_thing [postgres]\n-- It.\nSELECT :b",
            "versions of get_thing differ",
        ),
        (
            "-- name: do_thing [sqlite]\n-- It.\nSELECT 1\n-- name: do_thing [postgres]\n-- It.\nDELETE FROM t",
            "versions of do_thing differ",
        ),
    ],
)
def test_a_malformed_query_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(StorageMisconfigured) as caught:
        parse_queries(text)
    assert message in str(caught.value)


def test_queries_share_a_part() -> None:
    found = parse_queries(
        "-- part: filter\n-- What is looked for.\nAND a = :a\nAND b = :b\n\n"
        "-- name: list_{older|newer}_things\n-- Some.\nSELECT 1 WHERE id {<|>} :id {filter};\n"
    )
    for name, sign in (("list_older_things", "<"), ("list_newer_things", ">")):
        assert found.sqlite[name].sql.split() == f"SELECT 1 WHERE id {sign} :id AND a = :a AND b = :b".split()
        assert found.postgres[name].parameters == ("id", "a", "b")


def test_a_query_may_be_for_postgres_only() -> None:
    found = parse_queries("-- name: get_thing [postgres only]\n-- It.\nSELECT :a")
    assert found.postgres["get_thing"].accepts == {"a"}
    assert "get_thing" not in found.sqlite


def test_the_files_of_a_folder_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- A heading.\n\n-- name: get_thing\n-- It.\nSELECT 1 -- trailing\n")
    (tmp_path / "b.sql").write_text("-- Another.\n\n-- name: get_other\n-- It.\nSELECT 2\n")
    assert sorted(read_queries(tmp_path).sqlite) == ["get_other", "get_thing"]
    (tmp_path / "c.sql").write_text("-- name: get_thing\n-- It.\nSELECT 3\n")
    with pytest.raises(StorageMisconfigured, match=r"c\.sql:1: get_thing is defined twice"):
        read_queries(tmp_path).check()


def test_an_unknown_name_is_refused() -> None:
    found = parse_queries("-- name: get_thing\n-- It.\nSELECT 1")
    with pytest.raises(QueryMisused, match="no query named get_thin"):
        found.sqlite["get_thin"]
    with pytest.raises(QueryMisused, match="no query named get_thin"):
        found.postgres.get_reading("get_thin")


def test_the_queries_of_the_package_are_well_formed_for_both_databases() -> None:
    found = package_queries().check()
    assert len(found.sqlite) > 100


def test_lists_for_callers_name_their_columns() -> None:
    """Otherwise a large column that is added later is read for each row. Rows of requests are small and shown whole."""
    queries = package_queries().postgres
    pages = [name for name in queries if name.startswith(("list_older_", "list_newer_"))]
    assert len(pages) >= 10
    assert [name for name in pages if "*" in queries[name].sql and "_requests" not in name] == []


def test_an_insert_of_one_row_has_a_version_for_many_on_postgres() -> None:
    found = parse_queries(
        "-- name: add_thing\n-- A thing.\nINSERT INTO things (id,\n    size) VALUES (:id, :size)\n"
        "ON CONFLICT (id) DO NOTHING;\n"
        "-- name: add_fixed\n-- It has a fixed value.\nINSERT INTO things (id, size, kind) VALUES (:id, :id, 'old');\n"
        "-- name: add_other\n-- Its names differ.\nINSERT INTO things (id, size) VALUES (:id, :bytes);\n"
        "-- name: add_third\n-- It computes.\nINSERT INTO things (id, size) VALUES (:id, :size + 1);\n"
    )
    many = found.postgres["add_thing"].many
    assert many is not None
    assert " ".join(many.sql.split()) == (
        "INSERT INTO things (id, size) SELECT id, size FROM "
        "json_populate_recordset(CAST(NULL AS things), CAST($1 AS json)) ON CONFLICT (id) DO NOTHING"
    )
    assert (many.parameters, many.writes) == (("rows",), True)
    fixed = found.postgres["add_fixed"].many
    assert fixed is not None
    assert " ".join(fixed.sql.split()).startswith("INSERT INTO things (id, size, kind) SELECT id, id, 'old' FROM json_")
    assert [query.many for query in (found.sqlite["add_thing"], *list(found.postgres.values())[2:])] == [None] * 3
