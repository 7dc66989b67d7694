"""Create, list and revoke API keys."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from penstock.accounts.key_records import KeyRow, KeyUsage, key_record
from penstock.accounts.keys import Keys, NewKey
from penstock.accounts.labels import check_declared_names
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report, usd
from penstock.commands.tables import show_table
from penstock.store.base import Store
from penstock.values import iso
from penstock.vault import Vault

# The limits of a key as people read them.
_LIMITS: dict[str, Callable[[Any], str]] = {
    "requests_per_minute": lambda count: f"{count}/minute",
    "concurrent_requests": lambda count: f"{count} at a time",
    "usd_per_day": lambda amount: f"{usd(amount)}/day",
    "usd_per_month": lambda amount: f"{usd(amount)}/month",
    "models": lambda names: f"only {' '.join(names)}",
    "expires_at": lambda time: f"until {time[:10]}",
    "labels": lambda labels: " ".join(f"{name}={value}" for name, value in labels.items()),
}

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.")


@app.command("create")
def create_key(
    data: Data = None,
    config: Config = None,
    name: Annotated[str | None, typer.Option(help="Name of the key.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="`admin` lets the key manage the keys and webhooks of its organization, `operator` lets it see and "
            "manage the whole installation, with the keys and the credit of all organizations, `metrics` lets it read "
            "/metrics, as an operator may, `faults` lets it ask for faults in its own calls, `read` lets it "
            "read figures and change nothing. May be repeated."
        ),
    ] = None,
    org: Org = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="Maximum number of requests per minute.")] = None,
    concurrent_requests: Annotated[
        int | None, typer.Option(help="Maximum number of requests running at the same time.")
    ] = None,
    usd_per_day: Annotated[str | None, typer.Option(help="Maximum spend per UTC day, in USD.")] = None,
    usd_per_month: Annotated[str | None, typer.Option(help="Maximum spend per UTC month, in USD.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model that the key may use; may end with `*`. May be repeated. By default all."),
    ] = None,
    expires_at: Annotated[str | None, typer.Option(help="When the key stops working, such as 2027-01-31.")] = None,
    replay_mode: Annotated[str | None, typer.Option(help="Replay mode of calls without a replay header.")] = None,
    image_response_format: Annotated[
        str | None, typer.Option(help="How images are returned to calls that name no form: url or b64_json.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="A declared label of all its calls, as name=value. May be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it; it cannot be shown again."""
    settings = load_settings(data=data, config=config)
    labels = dict(text.partition("=")[::2] for text in label or ())

    async def work(store: Store, vault: Vault) -> NewKey:
        keys = Keys(store, vault, Clock())
        owner = await org_id(store, org, settings)
        await check_declared_names(store, owner, labels, "label")
        return await keys.create_key(
            owner,
            name=name,
            scopes=scope or [],
            requests_per_minute=requests_per_minute,
            concurrent_requests=concurrent_requests,
            usd_per_day=usd_per_day,
            usd_per_month=usd_per_month,
            models=model or None,
            expires_at=expires_at,
            replay_mode=replay_mode,
            image_response_format=image_response_format,
            labels=labels or None,
        )

    new = with_store(settings, work)
    if sys.stdout.isatty() and not as_json:
        typer.echo("Store this key now; it cannot be shown again:")
    report(new.key, as_json, id=new.id, key=new.key)


@app.command("list")
def list_keys(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List an organization's keys with the limits that they have, newest first."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[KeyRow]:
        owner = await org_id(store, org, settings)
        return await Keys(store, vault, Clock()).list_all(owner)

    rows = []
    for key in with_store(settings, work):
        record = key_record(key, KeyUsage())
        limits = {name: record[name] for name in _LIMITS if record[name] not in (None, {})}
        shown = limits if as_json else ", ".join(_LIMITS[name](limit) for name, limit in limits.items())
        rows.append([key.id, key.name, key.last_four, key.status, iso(key.created_at_ms), shown, key.owner_name])
    columns = ["id", "name", "ends in", "status", "created", "limits", "owner"]
    show_table("Keys", columns, rows, as_json, on_terminal=[column for column in columns if column != "created"])


@app.command("revoke")
def revoke_key(key_id: str, data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Revoke a key; running gateways refuse it within two seconds."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> None:
        keys = Keys(store, vault, Clock())
        await keys.revoke_key(await keys.get_org_id(key_id), key_id)

    with_store(settings, work)
    report(f"revoked {key_id}", as_json, id=key_id, status="revoked")
