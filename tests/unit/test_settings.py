"""Settings: what beats what, how each kind is read, and what is said of a mistake."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from penstock import settings
from penstock.settings import Settings, load


def write(folder: Path, text: str, name: str = "penstock.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ----------------------------------------------------------------------------------------------------------- precedence


@pytest.mark.parametrize(
    ("toml", "environ", "said", "port"),
    [
        ("", {}, {}, 8080),
        ("port = 1001", {}, {}, 1001),
        ("port = 1001", {"PENSTOCK_PORT": "1002"}, {}, 1002),
        ("port = 1001", {"PENSTOCK_PORT": "1002"}, {"port": 1003}, 1003),
        ("", {"PENSTOCK_PORT": "1002"}, {}, 1002),
        ("port = 1001", {}, {"port": None}, 1001),  # an option that was not given
        ("port = 1001", {"PORT": "1002", "PENSTOCK_port": "1004"}, {}, 1001),
    ],
)
def test_the_nearer_to_the_person_the_stronger(
    tmp_path: Path, toml: str, environ: dict[str, str], said: dict[str, Any], port: int
) -> None:
    write(tmp_path, toml)
    assert load({"data": tmp_path, **said}, environ).port == port


def test_file_is_looked_for_in_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path, "port = 1001")
    assert load({}, {"PENSTOCK_DATA": str(tmp_path)}).port == 1001
    assert load({"data": tmp_path / "elsewhere"}, {"PENSTOCK_DATA": str(tmp_path)}).port == 8080


def test_file_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, f'data = "{tmp_path}/kept"\nport = 1001', "my.toml")
    assert load({"config": path}, {}) == Settings(data=tmp_path / "kept", port=1001)
    assert load({}, {"PENSTOCK_CONFIG": str(path)}).port == 1001
    with pytest.raises(ValueError, match=r"no such file: .*missing\.toml"):
        load({"config": tmp_path / "missing.toml"}, {})


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load({"data": tmp_path}, {}) == Settings(data=tmp_path)


# ---------------------------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("name", "in_environ", "in_toml", "value"),
    [
        ("host", "::1", '"::1"', "::1"),
        ("port", "1001", "1001", 1001),
        ("image_wait_seconds", "2.5", "2.5", 2.5),
        ("image_wait_seconds", "3", "3", 3.0),
        ("worker", "no", "false", False),
        ("metrics", "True", "true", True),
        ("metrics", "on", '"yes"', True),
        ("starting_credit_usd", "2.50", "2.5", "2.5"),
        ("disabled_providers", "fal, replicate,", '["fal", "replicate"]', ("fal", "replicate")),
        ("webhook_delays_seconds", "1,2.5", "[1, 2.5]", (1.0, 2.5)),
        ("media_options", "region=eu,endpoint=http://x/?a=b", '{region = "eu", endpoint = "http://x/?a=b"}',
         {"region": "eu", "endpoint": "http://x/?a=b"}),
        ("data", "/srv/penstock", '"/srv/penstock"', Path("/srv/penstock")),
    ],
)  # fmt: skip
def test_kinds_are_read_from_text_and_from_toml(
    tmp_path: Path, name: str, in_environ: str, in_toml: str, value: Any
) -> None:
    from_environ = getattr(load({}, {f"PENSTOCK_{name.upper()}": in_environ}), name)
    path = write(tmp_path, f"{name} = {in_toml}")
    from_toml = getattr(load({"config": path}, {}), name)
    if name == "starting_credit_usd":
        assert (from_environ, from_toml) == ("2.50", value)
    else:
        assert (from_environ, from_toml) == (value, value)


def test_tables_come_from_the_file_alone(tmp_path: Path) -> None:
    write(tmp_path, '[providers.lab]\nspeaks = "openai"\n[models."lab/brush"]\nweight = 2\n')
    loaded = load({"data": tmp_path}, {"PENSTOCK_PROVIDERS": "x=y"})
    assert loaded.providers == {"lab": {"speaks": "openai"}}
    assert loaded.models == {"lab/brush": {"weight": 2}}


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("port = ", "penstock.toml: Invalid value (at end of document)"),
        ('port = "x"', "port must be a whole number"),
        ("port = true", "port must be a whole number"),
        ("port = 80.5", "port must be a whole number"),
        ("port = 65536", "port must be at most 65535"),
        ("port = -1", "port must be at least 0"),
        ("host = true", "host must be text"),
        ('host = ["a"]', "host must be text"),
        ('worker = "perhaps"', "worker must be true or false"),
        ("drain_seconds = true", "drain_seconds must be a number"),
        ("drain_seconds = -0.5", "drain_seconds must be at least 0"),
        ("drain_seconds = nan", "drain_seconds must be at least 0"),
        ("lease_seconds = 0", "lease_seconds must be above 0"),
        ("lease_seconds = inf", "lease_seconds must be above 0"),
        ("json_bytes = 0", "json_bytes must be above 0"),
        ("concurrent_jobs = -3", "concurrent_jobs must be above 0"),
        ("webhook_delays_seconds = [5, -1]", "webhook_delays_seconds must be at least 0"),
        ('webhook_delays_seconds = "soon"', "webhook_delays_seconds must be a list of numbers"),
        ("disabled_providers = 5", "disabled_providers must be a list"),
        ("disabled_providers = {fal = true}", "disabled_providers must be a list"),
        ('media_options = "region"', "media_options must be a table of words"),
        ("media_options = {region = [1]}", "media_options must be a table of words"),
        ('providers = "lab"', "providers must be a table"),
        ("models = [1]", "models must be a table"),
        ('billing = "free"', "billing must be one of prepaid, postpaid"),
        ('payloads = "some"', "payloads must be one of none, media, all"),
        ('unknown_prices = "guess"', "unknown_prices must be one of refuse, flag"),
        ('log_level = "loud"', "log_level must be one of debug, info, warning, error"),
        ('secret = "too short"', "secret must have at least 32 characters"),
        ('public_url = "gateway.example"', "public_url must be http(s)://host[:port]"),
        ('public_url = "https://gateway.example/?a"', "public_url must be http(s)://host[:port]"),
        ('egress_allow_cidrs = ["10.0.0.1/8"]', "egress_allow_cidrs: 10.0.0.1/8 has host bits set"),
        ('egress_allow_cidrs = ["intranet"]', "egress_allow_cidrs: 'intranet' does not appear to be"),
        ('starting_credit_usd = "ten"', "starting_credit_usd must be an amount of dollars such as 10.00"),
        ("starting_credit_usd = -1", "starting_credit_usd must be an amount of dollars such as 10.00"),
        ("starting_credit_usd = nan", "starting_credit_usd must be an amount of dollars such as 10.00"),
        ('media_retention = "1w"', "media_retention must be hours or days such as 12h or 7d"),
        ('media_retention_max = "forever"', "media_retention_max must be hours or days such as 12h or 7d"),
        ('media_retention = "31d"', "media_retention is longer than media_retention_max"),
        ('media_retention_max = "1h"', "media_retention is longer than media_retention_max"),
        ("prot = 1", "penstock.toml has unknown settings: prot; did you mean port?"),
        ("[serve]\nport = 1\n[xyz]", "penstock.toml has unknown settings: serve, xyz"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, toml: str, words: str) -> None:
    write(tmp_path, toml)
    with pytest.raises(ValueError, match=r".") as caught:
        load({"data": tmp_path}, {})
    assert str(caught.value).startswith(words)


def test_a_file_that_is_no_text_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_bytes(b"host = '\xff'")
    with pytest.raises(ValueError, match=r"^penstock\.toml: .*utf-8"):
        load({"data": tmp_path}, {})


def test_56_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    with pytest.raises(ValueError, match=r"^port must be") as caught:
        load({}, {"PENSTOCK_PORT": "sk-canary"})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# ------------------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"host": "::1", "port": 9}, "http://[::1]:9"),
        ({"public_url": "https://gateway.example/"}, "https://gateway.example"),
        ({"public_url": "https://gateway.example:8443/penstock"}, "https://gateway.example:8443/penstock"),
    ],
)
def test_base_url(said: dict[str, Any], address: str) -> None:
    assert Settings(**said).base_url == address


def test_every_setting_is_documented_once() -> None:
    rows = settings.rows()
    assert [row[0] for row in rows] == [item.name for item in fields(Settings)]
    assert all(about.endswith(".") for _, _, _, about in rows)
    shown = {name: (variable, default) for name, variable, default, _ in rows}
    assert shown["port"] == ("PENSTOCK_PORT", "8080")
    assert shown["worker"] == ("PENSTOCK_WORKER", "true")
    assert shown["webhook_delays_seconds"] == ("PENSTOCK_WEBHOOK_DELAYS_SECONDS", "5.0, 15.0, 45.0")
    assert shown["providers"] == ("", "")


def test_defaults_are_those_that_were_promised() -> None:
    usual = Settings()
    assert (usual.media_retention, usual.media_retention_max) == ("24h", "30d")  # D5
    assert usual.image_wait_seconds == 300  # D6
    assert (usual.webhook_delays_seconds, usual.webhook_timeout_seconds) == ((5, 15, 45), 30)
    assert usual.billing == "prepaid"  # D4
    assert usual.host == "127.0.0.1"
