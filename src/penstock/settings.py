"""Every setting, its default and its one-line meaning."""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from math import isfinite
from pathlib import Path
from typing import Any

from penstock.values import Nanos, Retention, nanos

PREFIX = "PENSTOCK_"


def _setting(default: Any, about: str) -> Any:
    if isinstance(default, tuple | dict):
        return field(default_factory=lambda: default, metadata={"about": about})
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One table that is defaults, documentation and environment names at once."""

    data: Path = _setting(Path("data"), "Folder for the database, media, keys and penstock.toml.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on.")
    public_url: str = _setting("", "Address callers reach us at, for media addresses; empty: taken from host and port.")
    behind_tls: bool = _setting(False, "Something in front of us speaks TLS; required to listen beyond this machine.")
    trusted_proxies: tuple[str, ...] = _setting((), "Addresses whose X-Forwarded-* headers are believed.")

    database: str = _setting("", "postgresql://… to use Postgres; empty: SQLite in the data folder.")
    database_connections: int = _setting(16, "Most connections to Postgres from one process.")
    media: str = _setting("", "s3://bucket/prefix (or gs://, az://) for media; empty: a folder beside the data.")
    media_options: Mapping[str, str] = _setting({}, "Options of the object store, such as endpoint and region.")
    secret: str = _setting("", "Master secret of at least 32 characters; empty: kept in the data folder.")
    worker: bool = _setting(True, "Also drive videos and webhooks in the serving process.")

    starting_credit_usd: str = _setting("10.00", "What the first organization starts with.")
    billing: str = _setting("prepaid", "How new organizations pay: prepaid or postpaid.")
    unknown_prices: str = _setting("refuse", "A model without a price: refuse it, or flag it and charge nothing.")

    media_retention: str = _setting("24h", "How long produced media is kept unless the caller says.")
    media_retention_max: str = _setting("30d", "The longest retention a caller may ask for.")
    url_seconds: int = _setting(3600, "How long an image's signed address works.")
    payloads: str = _setting("media", "Whose bodies are stored until purged: none, media (not chat) or all.")

    image_wait_seconds: float = _setting(300.0, "How long a caller waits for an image before UPSTREAM_TIMEOUT.")
    job_deadline_seconds: float = _setting(86_400.0, "When an unfinished generation is given up.")
    upstream_seconds: float = _setting(600.0, "Longest single call to a provider.")
    stream_seconds: float = _setting(3600.0, "Longest streamed chat answer.")
    chat_output_tokens: int = _setting(4096, "Tokens to set money aside for when a chat call sets no max_tokens.")
    poll_seconds_max: float = _setting(60.0, "Longest pause between two polls.")
    lease_seconds: float = _setting(30.0, "After how long without a sign of life another worker takes a job over.")
    concurrent_jobs: int = _setting(10_000, "Most generations one process drives at a time.")

    json_bytes: int = _setting(32 * 1024**2, "Largest JSON body.")
    form_bytes: int = _setting(64 * 1024**2, "Largest multipart body.")
    image_bytes: int = _setting(20 * 1024**2, "Largest image a caller may send or name.")
    video_bytes: int = _setting(2 * 1024**3, "Largest video accepted from a provider.")
    body_seconds: float = _setting(120.0, "How long a caller may take to send its body.")
    drain_seconds: float = _setting(30.0, "How long SIGTERM waits for calls under way.")
    image_workers: int = _setting(0, "Child processes for images and videos; 0: one per core.")

    router: str = _setting("openrouter", "Provider that gets chat models nobody else serves.")
    disabled_providers: tuple[str, ...] = _setting((), "Slugs of providers to leave out.")
    egress_allow_hosts: tuple[str, ...] = _setting((), "Hosts that the address guard lets through.")
    egress_allow_cidrs: tuple[str, ...] = _setting((), "Networks that the address guard lets through.")
    ca_file: str = _setting("", "PEM file of a further certificate authority to trust.")
    webhook_delays_seconds: tuple[float, ...] = _setting((5.0, 15.0, 45.0), "Pauses before each webhook retry.")
    webhook_timeout_seconds: float = _setting(30.0, "Longest webhook attempt.")

    log_level: str = _setting("info", "debug, info, warning or error.")
    metrics: bool = _setting(True, "Serve /metrics to keys with the admin scope.")

    # Tables of penstock.toml; not settable from the environment.
    providers: Mapping[str, Any] = _setting({}, "OpenAI-compatible endpoints and changes to known providers.")
    models: Mapping[str, Any] = _setting({}, "Changes to known models: price, priority, weight, enabled.")

    def __post_init__(self) -> None:
        for name, words in _ONE_OF.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be one of {', '.join(words)}")
        for item in fields(self):
            _check_numbers(item.name, getattr(self, item.name))
        if self.port > 65_535:
            raise ValueError("port must be at most 65535")
        if self.secret and len(self.secret) < 32:
            raise ValueError("secret must have at least 32 characters")
        if self.public_url and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", self.public_url):
            raise ValueError("public_url must be http(s)://host[:port], perhaps with a path")
        for block in self.egress_allow_cidrs:
            _check_block(block)
        _check_money(self.starting_credit_usd)
        usual, longest = (_seconds(name, getattr(self, name)) for name in ("media_retention", "media_retention_max"))
        if usual > longest:
            raise ValueError("media_retention is longer than media_retention_max")

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"


_ONE_OF = {
    "billing": ("prepaid", "postpaid"),
    "payloads": ("none", "media", "all"),
    "unknown_prices": ("refuse", "flag"),
    "log_level": ("debug", "info", "warning", "error"),
}
# Everything else that is counted, weighed or timed makes no sense without any of it.
_MAY_BE_ZERO = {
    "port", "image_workers", "image_wait_seconds", "drain_seconds", "webhook_delays_seconds",
}  # fmt: skip


def _check_numbers(name: str, value: Any) -> None:
    for one in value if isinstance(value, tuple) else (value,):
        if not isinstance(one, int | float) or isinstance(one, bool):
            continue
        if not isfinite(one) or one < 0 or (one == 0 and name not in _MAY_BE_ZERO):
            raise ValueError(f"{name} must be {'at least' if name in _MAY_BE_ZERO else 'above'} 0")


def _check_block(block: str) -> None:
    try:
        ip_network(block)
    except ValueError as problem:
        raise ValueError(f"egress_allow_cidrs: {problem}") from None


def _check_money(usd: str) -> None:
    try:
        amount = nanos(usd)
    except ValueError:
        amount = Nanos(-1)
    if amount < 0:
        raise ValueError("starting_credit_usd must be an amount of dollars such as 10.00")


def _seconds(name: str, text: str) -> int:
    try:
        return Retention.parse(text).seconds
    except ValueError:
        raise ValueError(f"{name} must be hours or days such as 12h or 7d") from None


TABLES = ("providers", "models")


def load(overrides: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Settings:
    """Defaults, then penstock.toml, then PENSTOCK_* variables, then what the command line said."""
    said = {name: value for name, value in overrides.items() if value is not None}
    config = said.pop("config", None) or environ.get(PREFIX + "CONFIG")
    data = Path(said.get("data") or environ.get(PREFIX + "DATA") or "data")
    path = Path(config) if config else data / "penstock.toml"
    if config and not path.is_file():
        raise ValueError(f"no such file: {path}")
    kinds = {item.name: item.type for item in fields(Settings)}
    written = _written(path, kinds) if path.is_file() else {}
    from_environ = {
        name: environ[PREFIX + name.upper()]
        for name in kinds
        if name not in TABLES and PREFIX + name.upper() in environ
    }
    values = {**written, **from_environ, **said}
    return Settings(**{name: _read(name, kinds[name], value) for name, value in values.items()})


def _written(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ValueError(f"{path.name}: {problem}") from None
    if unknown := sorted(set(written) - set(known)):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{path.name} has unknown settings: {', '.join(unknown)}{hint}")
    return written


def _read(name: str, kind: Any, value: Any) -> Any:
    """A value of toml, the environment or the command line as the type of its setting."""
    reader, words = _READERS[str(kind)]
    try:
        return reader(value)
    except (ValueError, TypeError, KeyError):
        # The value is not repeated: it may be a secret in the wrong place.
        raise ValueError(f"{name} must be {words}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float | Path) or isinstance(value, bool):
        raise TypeError
    return str(value)


def _whole(value: Any) -> int:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    return value if isinstance(value, bool) else words[str(value).lower()]


def _list(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple):
        raise TypeError
    items = value.split(",") if isinstance(value, str) else value
    return tuple(word for item in items if (word := _text(item).strip()))


def _pairs(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return dict(pair.split("=", 1) for pair in _list(value))
    return {name: _text(one) for name, one in _table(value).items()}


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return dict(value)


_READERS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    str(str): (_text, "text"),
    str(int): (_whole, "a whole number"),
    str(float): (_number, "a number"),
    str(bool): (_flag, "true or false"),
    str(Path): (lambda value: Path(_text(value)), "a path"),
    str(tuple[str, ...]): (_list, "a list; in the environment, words with commas between them"),
    str(tuple[float, ...]): (lambda value: tuple(map(_number, _list(value))), "a list of numbers"),
    str(Mapping[str, str]): (_pairs, "a table of words; in the environment, name=value with commas between them"),
    str(Mapping[str, Any]): (_table, "a table"),
}


def rows() -> list[tuple[str, str, str, str]]:
    """Name, environment name, default and meaning of each setting, for `penstock settings` and the docs."""
    table = []
    for item in fields(Settings):
        default = item.default_factory() if callable(item.default_factory) else item.default
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        shown = shown.lower() if isinstance(default, bool) else shown.replace("{}", "")
        variable = "" if item.name in TABLES else PREFIX + item.name.upper()
        table.append((item.name, variable, shown, item.metadata["about"]))
    return table
