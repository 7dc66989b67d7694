"""List models, and search the catalogues of providers for more."""

from typing import Annotated, Any

import typer

from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.output import print_json
from penstock.commands.terminal import Config, Data, Json, load_settings, show
from penstock.environment import ENVIRONMENT
from penstock.models.catalog import Catalog
from penstock.providers import discover

app = typer.Typer(help="List models, or search for one.", invoke_without_command=True)
_COLUMNS = ["id", "modes", "providers", "price"]


@app.callback()
def list_models(context: typer.Context, data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List the models that this configuration serves."""
    if context.invoked_subcommand is not None:
        return
    listed = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT).list()
    if as_json:
        print_json(listed)
    else:
        show("Models", _COLUMNS, [_row(model) for model in listed])


@app.command()
def search(
    words: Annotated[list[str] | None, typer.Argument(help="Words of the model's id or name.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Search this provider's own catalogue, too: fal, replicate or openrouter.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Search a running gateway for models, also for those that only a provider's own catalogue has."""
    gateway = find_gateway(url, key, data, config)
    found = gateway.get("/compat/v1/models", search=" ".join(words or ()), provider=provider).body
    if as_json:
        print_json(found)
        return
    show("Models", _COLUMNS, [_row(model) for model in found["data"]])


def _row(model: dict[str, Any]) -> list[str]:
    return [model["id"], ", ".join(model["modes"]), ", ".join(model["providers"]), _price(model["pricing"])]


def _price(pricing: list[dict[str, Any]]) -> str:
    """Return the first price as text."""
    if not pricing:
        return "unknown"
    first = pricing[0]
    input_price = f"{first['input_usd']} in, " if "input_usd" in first else ""
    return f"{input_price}{first['usd']} USD / {first['unit']}"
