"""Add, list, change, check, rotate and delete the buckets into which outputs of an organization are copied."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.clock import Clock
from penstock.commands.call_options import given
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, print_json, report
from penstock.commands.tables import show_table
from penstock.destinations.destinations import Destinations, open_destinations
from penstock.errors import InvalidRequest
from penstock.net.client import HttpClient
from penstock.store.base import Store
from penstock.values import OrgId
from penstock.vault import Vault

Work = Callable[[Destinations, OrgId], Awaitable[Any]]
Id = Annotated[str, typer.Argument(help="Id of the destination.")]
KeyId = Annotated[str, typer.Option("--access-key-id", help="Id of the access key.")]
FromFile = Annotated[
    Path, typer.Option("--from-file", help="File with the secret of the key, or `-` for stdin: not visible to others.")
]
Name = Annotated[str | None, typer.Option(help="Name of the destination.")]
FilePath = Annotated[str | None, typer.Option("--path", help="Path of each file below the folder.")]
Default = Annotated[
    bool | None, typer.Option("--default/--no-default", help="Outputs of calls without `deliver_to` go there, or not.")
]
Required = Annotated[
    bool | None, typer.Option("--required/--no-required", help="A call fails whose outputs cannot be copied, or not.")
]
_COLUMNS = ("id", "name", "url", "default", "required", "last_four", "failure")

app = typer.Typer(no_args_is_help=True, help="Add, list, check, rotate and delete buckets for outputs.")


@app.command("add")
def add_destination(
    url: Annotated[str, typer.Argument(help="Bucket and folder, such as s3://bucket/folder.")],
    access_key_id: KeyId,
    from_file: FromFile,
    region: Annotated[str | None, typer.Option(help="Region of the bucket.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="HTTPS URL of a server that speaks S3; without it AWS.")] = None,
    name: Name = None,
    path: FilePath = None,
    default: Default = None,
    required: Required = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Add a destination, after a small file was written into it; running gateways use it within two seconds."""
    options = {"name": name, "path": path, "default": default, "required": required}
    fields = given({"url": url, "region": region, "endpoint": endpoint, **options}) | _keys(access_key_id, from_file)
    added = _with_destinations(data, config, org, lambda destinations, owner: destinations.add(owner, fields))
    _report_check(f"added {added['id']}", added, as_json)


@app.command("list")
def list_destinations(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List the destinations of an organization, and why the last copy failed if it did."""

    async def work(destinations: Destinations, owner: OrgId) -> list[dict[str, Any]]:
        return destinations.list_records(owner)

    records = _with_destinations(data, config, org, work)
    if as_json:
        print_json(records)
    else:
        show_table("Destinations", [*_COLUMNS], [[record[column] for column in _COLUMNS] for record in records])


@app.command("change")
def change_destination(
    destination_id: Id,
    name: Name = None,
    path: FilePath = None,
    default: Default = None,
    required: Required = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Change the options that are given."""
    fields = given({"name": name, "path": path, "default": default, "required": required})
    if not fields:
        raise InvalidRequest("Give what is to be changed: --name, --path, --default or --required.")

    def work(destinations: Destinations, owner: OrgId) -> Awaitable[Any]:
        return destinations.change(owner, destination_id, fields)

    report(f"changed {destination_id}", as_json, **_with_destinations(data, config, org, work))


@app.command("check")
def check_destination(
    destination_id: Id, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False
) -> None:
    """Write a small file, read it and delete it; exit with status 1 if it cannot be written."""

    def work(destinations: Destinations, owner: OrgId) -> Awaitable[Any]:
        return destinations.check(owner, destination_id)

    checked = _with_destinations(data, config, org, work)
    _report_check(f"{destination_id} {'works' if checked['check']['works'] else 'does not work'}", checked, as_json)
    if not checked["check"]["works"]:
        raise typer.Exit(1)


@app.command("rotate")
def rotate_destination(
    destination_id: Id,
    access_key_id: KeyId,
    from_file: FromFile,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Replace the key, also for files that wait to be copied, after a small file was written with the new one."""
    keys = _keys(access_key_id, from_file)

    def work(destinations: Destinations, owner: OrgId) -> Awaitable[Any]:
        return destinations.rotate(owner, destination_id, keys)

    _report_check(f"rotated {destination_id}", _with_destinations(data, config, org, work), as_json)


@app.command("delete")
def delete_destination(
    destination_id: Id, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False
) -> None:
    """Delete a destination with its key. What was copied stays, and what waits to be copied is not copied."""

    def work(destinations: Destinations, owner: OrgId) -> Awaitable[Any]:
        return destinations.delete(owner, destination_id)

    _with_destinations(data, config, org, work)
    report(f"deleted {destination_id}", as_json, id=destination_id, status="deleted")


def _with_destinations(data: Path | None, config: Path | None, org: str | None, work: Work) -> Any:
    settings = load_settings(data=data, config=config)

    async def with_destinations(store: Store, vault: Vault) -> Any:
        client = HttpClient(ca_file=Path(settings.ca_file) if settings.ca_file else None)
        try:
            destinations = await open_destinations(store, vault, Clock(), client, settings)
            return await work(destinations, await org_id(store, org, settings))
        finally:
            await client.close()

    return with_store(settings, with_destinations)


def _keys(access_key_id: str, from_file: Path) -> dict[str, str]:
    """The fields with the key. Raises InvalidRequest for a file without a secret."""
    text = sys.stdin.read() if from_file == Path("-") else from_file.expanduser().read_text()
    if not text.strip():
        raise InvalidRequest("There is no secret in the file.")
    return {"access_key_id": access_key_id, "secret_access_key": text.strip()}


def _report_check(text: str, record: dict[str, Any], as_json: bool) -> None:
    """Say what was done, and what the check of the bucket found, if there is something to say."""
    message = record["check"]["message"]
    report(f"{text}: {message}" if message else text, as_json, **record)
