"""Values on their way to Postgres and back, without the store around."""

import psycopg
import pytest

from penstock.store.postgres_types import adapt


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 = 1", 1),
        ("1 = 2", 0),
        ("NULL::boolean", None),
        ("SUM(n) FROM (VALUES (9223372036854775807::bigint), (1)) AS t (n)", 9223372036854775808),
        ("SUM(n) FROM (VALUES (100::bigint), (200)) AS t (n)", 300),
        ("SUM(n) FROM (VALUES (-10::bigint), (-90)) AS t (n)", -100),
        ("AVG(n) FROM (VALUES (1::bigint), (2)) AS t (n)", 1.5),
        ("AVG(n) FROM (VALUES (2::bigint), (2)) AS t (n)", 2.0),
        ("1.5::float8", 1.5),
        ("'ü'::text", "ü"),
        ("'\\x00ff'::bytea", b"\x00\xff"),
    ],
)
def test_results(fresh_database: str, binary: bool, expression: str, value: object) -> None:
    with psycopg.connect(fresh_database) as connection:
        adapt(connection)
        row = connection.execute(f"SELECT {expression}".encode(), binary=binary).fetchone()
        assert row == (value,)
        assert row is not None
        assert type(row[0]) is type(value)


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize(
    ("value", "kind"),
    [(0, "bigint"), (2**62, "bigint"), (True, "bigint"), (False, "bigint"), ("x", "text"), (b"\x00", "bytea")],
)
def test_parameters_have_one_type_whatever_their_value(
    fresh_database: str, prepare: bool, value: object, kind: str
) -> None:
    with psycopg.connect(fresh_database) as connection:
        adapt(connection)
        row = connection.execute("SELECT %s, pg_typeof(%s)::text", (value, value), prepare=prepare).fetchone()
        assert row == (value, kind)


def test_a_number_beyond_64_bits_is_refused_and_not_cut(fresh_database: str) -> None:
    with psycopg.connect(fresh_database) as connection:
        adapt(connection)
        with pytest.raises((OverflowError, psycopg.Error)):
            connection.execute("SELECT %s", (2**63,))
