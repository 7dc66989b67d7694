"""Make Postgres accept and return the same Python types as SQLite: int, float, str, bytes and None."""

from decimal import Decimal
from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper, NumericBinaryLoader
from psycopg.types.string import StrBinaryDumper, StrDumper


class _BoolDumper(Int8Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(int(obj))


class _BoolBinaryDumper(Int8BinaryDumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(int(obj))


class _BoolLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _BoolBinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(bytes(data) != b"\0")


class _NumericLoader(Loader):
    """Load `numeric` as int if it has no decimals, as a sum of integers has not, else as float."""

    def load(self, data: Buffer) -> int | float:
        return _number(Decimal(bytes(data).decode()))


class _NumericBinaryLoader(NumericBinaryLoader):
    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        return _number(super().load(data))


def _number(value: Decimal) -> int | float:
    return int(value) if value.as_tuple().exponent == 0 else float(value)


def adapt(context: AdaptContext) -> None:
    """Set the types of one connection."""
    adapters = context.adapters
    # By default psycopg sends each integer as the smallest type that fits: every combination of types would need a
    # prepared statement of its own, and `:a + :b` could overflow at 32767. Text is sent with the type `text`.
    for dumper in (Int8Dumper, Int8BinaryDumper):
        adapters.register_dumper(int, dumper)
    for boolean in (_BoolDumper, _BoolBinaryDumper):
        adapters.register_dumper(bool, boolean)
    for text in (StrBinaryDumper, StrDumper):
        adapters.register_dumper(str, text)
    for loader in (_BoolLoader, _BoolBinaryLoader):
        adapters.register_loader("bool", loader)
    for number in (_NumericLoader, _NumericBinaryLoader):
        adapters.register_loader("numeric", number)
