"""Settings: which source wins, how each type is read, and what the message about a mistake says."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from penstock.settings import Settings, description
from penstock.settings.loading import load
from penstock.typed_config import Misconfigured


def write(folder: Path, text: str, name: str = "penstock.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ----------------------------------------------------------------------------------------------------------- precedence


@pytest.mark.parametrize(
    ("toml", "environ", "overrides", "port"),
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
def test_the_command_line_beats_the_environment_which_beats_the_file(
    tmp_path: Path, toml: str, environ: dict[str, str], overrides: dict[str, Any], port: int
) -> None:
    write(tmp_path, toml)
    assert load({"data": tmp_path, **overrides}, environ).port == port


def test_the_file_is_read_from_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path, "port = 1001")
    assert load({}, {"PENSTOCK_DATA": str(tmp_path)}).port == 1001
    assert load({"data": tmp_path / "elsewhere"}, {"PENSTOCK_DATA": str(tmp_path)}).port == 8080


def test_the_path_of_the_file_may_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, f'data = "{tmp_path}/kept"\nport = 1001', "my.toml")
    assert load({"config": path}, {}) == Settings(data=tmp_path / "kept", port=1001)
    assert load({}, {"PENSTOCK_CONFIG": str(path)}).port == 1001
    with pytest.raises(ValueError, match=r"no such file: .*missing\.toml"):
        load({"config": tmp_path / "missing.toml"}, {})


def test_without_file_and_environment_the_defaults_apply(tmp_path: Path) -> None:
    assert load({"data": tmp_path}, {}) == Settings(data=tmp_path)


# ---------------------------------------------------------------------------------------------------------------- types


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
def test_types_are_read_from_text_and_from_toml(
    tmp_path: Path, name: str, in_environ: str, in_toml: str, value: Any
) -> None:
    from_environ = getattr(load({}, {f"PENSTOCK_{name.upper()}": in_environ}), name)
    path = write(tmp_path, f"{name} = {in_toml}")
    from_toml = getattr(load({"config": path}, {}), name)
    if name == "starting_credit_usd":
        assert (from_environ, from_toml) == ("2.50", value)
    else:
        assert (from_environ, from_toml) == (value, value)


def test_tables_come_only_from_the_file(tmp_path: Path) -> None:
    write(tmp_path, '[providers.lab]\nspeaks = "openai"\n[models."lab/brush"]\nweight = 2\n')
    loaded = load({"data": tmp_path}, {"PENSTOCK_PROVIDERS": "x=y"})
    assert loaded.providers == {"lab": {"speaks": "openai"}}
    assert loaded.models == {"lab/brush": {"weight": 2}}


# ------------------------------------------------------------------------------------------------------------- mistakes

SECONDS = "must be a number above 0, at most 1000000000"
DELAYS = (5.0, 15.0, 45.0)
PAUSE = "must be a number from 0 to 1000000000"
DOLLARS = 'starting_credit_usd must be an amount of dollars as text, such as "0.04"'
NETWORKS = "networks such as 10.20.0.0/16, with no bit set after the prefix"
PROXIES = f"trusted_proxies must be `*`, addresses or {NETWORKS}"
HOST = "must be a host name or IP address alone"
PUBLIC_URL = "public_url must be http(s)://host[:port], with a path if needed, or empty"

MISTAKES = {
    "port = ": "penstock.toml: Invalid value (at end of document)",
    'port = "x"': "port must be a whole number from 0 to 65535",
    "port = true": "port must be a whole number from 0 to 65535",
    "port = 80.5": "port must be a whole number from 0 to 65535",
    "port = 65536": "port must be a whole number from 0 to 65535",
    "port = -1": "port must be a whole number from 0 to 65535",
    "host = true": "host must be text",
    'host = ["a"]': "host must be text",
    'worker = "perhaps"': "worker must be true or false",
    "drain_seconds = true": f"drain_seconds {PAUSE}",
    "drain_seconds = -0.5": f"drain_seconds {PAUSE}",
    "drain_seconds = nan": f"drain_seconds {PAUSE}",
    "lease_seconds = 0": f"lease_seconds {SECONDS}",
    "lease_seconds = inf": f"lease_seconds {SECONDS}",
    "json_bytes = 0": "json_bytes must be a whole number above 0",
    "concurrent_jobs = -3": "concurrent_jobs must be a whole number above 0",
    "image_workers = -1": "image_workers must be a whole number, at least 0",
    "webhook_delays_seconds = [5, -1]": f"webhook_delays_seconds[1] {PAUSE}",
    'webhook_delays_seconds = "soon"': f"webhook_delays_seconds[0] {PAUSE}",
    "webhook_delays_seconds = 5": "webhook_delays_seconds must be a list of numbers",
    "disabled_providers = 5": "disabled_providers must be a list of text",
    "disabled_providers = {fal = true}": "disabled_providers must be a list of text",
    'media_options = "region"': "media_options must be pairs name=value with commas between them",
    "media_options = {region = [1]}": "media_options must be a table; each value must be text",
    "media_options = 5": "media_options must be a table; each value must be text",
    'providers = "lab"': "providers must be a table",
    "models = [1]": "models must be a table",
    'billing = "free"': "billing must be one of postpaid, prepaid",
    'payloads = "some"': "payloads must be one of all, media, none",
    'unknown_prices = "guess"': "unknown_prices must be one of flag, refuse",
    'log_level = "loud"': "log_level must be one of debug, error, info, warning",
    'secret = "too short"': "secret must be at least 32 characters long, or empty",
    'public_url = "gateway.example"': PUBLIC_URL,
    'public_url = "https://gateway.example/?a"': PUBLIC_URL,
    'public_url = "https://gateway.example\\n"': PUBLIC_URL,
    'egress_allow_cidrs = ["10.0.0.1/8"]': f"egress_allow_cidrs must be {NETWORKS}",
    'egress_allow_cidrs = ["intranet"]': f"egress_allow_cidrs must be {NETWORKS}",
    'egress_allow_hosts = ["http://intranet"]': f"egress_allow_hosts[0] {HOST}",
    'egress_allow_hosts = ["*.intranet"]': f"egress_allow_hosts[0] {HOST}",
    'trusted_proxies = ["nginx"]': PROXIES,
    'trusted_proxies = ["*", "10.0.0.1/8"]': PROXIES,
    'trusted_proxies = ["127.0.0.1:80"]': PROXIES,
    'allowed_hosts = ["media.example.com", "localhost:8080"]': f"allowed_hosts[1] {HOST}",
    'allowed_hosts = ["https://media.example.com"]': f"allowed_hosts[0] {HOST}",
    'database = "sqlite:///x"': "database must be postgresql://user:password@host/database, or empty",
    'media_urls = "bucket"': "media_urls must be one of gateway, store",
    'media_urls = "store"': "media_urls = store needs an object store (the setting `media`)",
    'media_public_endpoint = "https://files.test"': "media_public_endpoint needs media_urls = store",
    'starting_credit_usd = "ten"': DOLLARS,
    "starting_credit_usd = -1": DOLLARS,
    "starting_credit_usd = nan": DOLLARS,
    'media_retention = "1w"': "media_retention must be a number of hours or days such as 12h or 7d",
    'media_retention_max = "forever"': "media_retention_max must be a number of hours or days such as 12h or 7d",
    'media_retention = "31d"': "media_retention is longer than media_retention_max",
    'media_retention_max = "1h"': "media_retention is longer than media_retention_max",
    "prot = 1": "penstock.toml has unknown settings: prot (did you mean port?)",
    "[serve]\nport = 1\n[xyz]": "penstock.toml has unknown settings: serve (did you mean secret?), xyz",
}


def message(folder: Path, toml: str) -> str:
    """The message about a file with a mistake."""
    write(folder, toml)
    with pytest.raises(Misconfigured) as caught:
        load({"data": folder}, {})
    return str(caught.value)


def test_a_mistake_is_named_with_what_is_allowed(tmp_path: Path) -> None:
    assert {toml: message(tmp_path, toml) for toml in MISTAKES} == MISTAKES


def test_the_data_folder_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"^data must be a path$"):
        load({"config": write(tmp_path, "data = 5.5")}, {})


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_bytes(b"host = '\xff'")
    with pytest.raises(Misconfigured, match=r"^penstock\.toml: .*utf-8"):
        load({"data": tmp_path}, {})


def test_no_message_repeats_the_value() -> None:
    """It may be a secret in the wrong place."""
    kinds = get_type_hints(Settings, include_extras=True)
    for name, variable, _, _ in description.rows():
        files = ("ca_file", "provenance_certificate", "provenance_key", "provenance_anchors")
        if not variable or name in (
            "data",
            "host",
            "media",
            "router",
            "invoice_issuer",
            "provenance_aigc_producer",
            "provenance_signer",
            *files,
        ):
            continue  # tables, and text of any kind
        if get_args(kinds[name])[0] == tuple[str, ...] and name not in ("egress_allow_cidrs", "trusted_proxies"):
            continue  # lists of any text
        if name in ("allowed_hosts", "egress_allow_hosts"):
            continue  # any word may be a host
        with pytest.raises(Misconfigured, match=rf"^{name}(\[0\])? must be") as caught:
            load({}, {variable: "sk-canary"})
        assert "canary" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


# ------------------------------------------------------------------------------------------------------------- the rest


def test_every_setting_is_documented_once() -> None:
    rows = description.rows()
    assert [row[0] for row in rows] == list(Settings.__struct_fields__)
    assert all(about.endswith(".") for _, _, _, about in rows)
    shown = {name: (variable, default) for name, variable, default, _ in rows}
    assert shown["port"] == ("PENSTOCK_PORT", "8080")
    assert shown["worker"] == ("PENSTOCK_WORKER", "true")
    assert shown["webhook_delays_seconds"] == ("PENSTOCK_WEBHOOK_DELAYS_SECONDS", ", ".join(map(str, DELAYS)))
    assert shown["providers"] == ("", "")


def test_defaults_are_as_documented() -> None:
    defaults = Settings()
    assert (defaults.media_retention, defaults.media_retention_max) == ("24h", "30d")
    assert defaults.image_wait_seconds == 300
    assert (defaults.webhook_delays_seconds, defaults.webhook_timeout_seconds) == (DELAYS, 30)
    assert defaults.billing == "prepaid"
    assert defaults.host == "127.0.0.1"


def test_hosts_proxies_and_databases_are_taken_in_every_usual_form(tmp_path: Path) -> None:
    hosts = ("media.example.com", "localhost", "127.0.0.1", "::1", "[::1]", "fe80::1", "gateway_1")
    proxies = ("127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8", "*")
    given = {"allowed_hosts": hosts, "egress_allow_hosts": hosts, "trusted_proxies": proxies}
    found = load(
        {"data": tmp_path, "database": "postgres://penstock@%2Frun%2Fpostgresql/penstock?sslmode=require", **given}, {}
    )
    assert (found.allowed_hosts, found.egress_allow_hosts, found.trusted_proxies) == (hosts, hosts, proxies)
