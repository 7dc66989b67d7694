"""Make Postgres take and give the same Python values as SQLite does: int, float, str, bytes, None."""

from decimal import Decimal
from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper, NumericBinaryLoader
from psycopg.types.string import StrBinaryDumper, StrDumper


class _TruthDumper(Int8Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(int(obj))


class _TruthBinaryDumper(Int8BinaryDumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(int(obj))


class _TruthLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _TruthBinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(bytes(data) != b"\0")


class _NumericLoader(Loader):
    """A sum of integers is `numeric` and stays whole; an average has decimals and is a float."""

    def load(self, data: Buffer) -> int | float:
        return _number(Decimal(bytes(data).decode()))


class _NumericBinaryLoader(NumericBinaryLoader):
    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        return _number(super().load(data))


def _number(value: Decimal) -> int | float:
    return int(value) if value.as_tuple().exponent == 0 else float(value)


def adapt(context: AdaptContext) -> None:
    """Teach one connection these rules."""
    adapters = context.adapters
    # Left alone, psycopg picks the smallest integer type that fits each value: another prepared statement for each
    # combination, and `:a + :b` that overflows at 32767. Text without a type would leave Postgres guessing.
    for dumper in (Int8Dumper, Int8BinaryDumper):
        adapters.register_dumper(int, dumper)
    for truth in (_TruthDumper, _TruthBinaryDumper):
        adapters.register_dumper(bool, truth)
    for text in (StrBinaryDumper, StrDumper):
        adapters.register_dumper(str, text)
    for loader in (_TruthLoader, _TruthBinaryLoader):
        adapters.register_loader("bool", loader)
    for number in (_NumericLoader, _NumericBinaryLoader):
        adapters.register_loader("numeric", number)
