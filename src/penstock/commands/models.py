"""List models, and search the catalogues of providers for more."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.output import Json, print_json
from penstock.commands.tables import show_table
from penstock.environment import ENVIRONMENT
from penstock.models.catalog import Catalog
from penstock.providers import discover


class _Models(TyperGroup):
    """The commands about models; `penstock models WORDS` is short for `penstock models search WORDS`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, else `search` with all words."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["search", *args])


app = typer.Typer(cls=_Models, help="List models, or search for one.", invoke_without_command=True)
_COLUMNS = ["id", "modes", "providers", "price"]


@app.callback()
def list_models(context: typer.Context, data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List the models that this configuration serves."""
    if context.invoked_subcommand is not None:
        return
    listed = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT).describe_all()
    if as_json:
        print_json(listed)
    else:
        show_table("Models", _COLUMNS, [_row(model) for model in listed])


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
    show_table("Models", _COLUMNS, [_row(model) for model in found["data"]])


def _row(model: dict[str, Any]) -> list[str]:
    return [model["id"], ", ".join(model["modes"]), ", ".join(model["providers"]), _price(model["pricing"])]


def _price(pricing: list[dict[str, Any]]) -> str:
    """The lowest and the highest of today's prices that have the unit of the first one; of tokens, for a million."""
    today = datetime.now(UTC).date().isoformat()
    rows = [row for row in pricing if row["unit"] == pricing[0]["unit"] and row.get("from", "") <= today]
    if not rows:
        return "unknown"
    is_tokens = rows[0]["unit"] == "token"
    input_price = _range([row["input_usd"] for row in rows if "input_usd" in row], is_tokens)
    unit = "million tokens" if is_tokens else rows[0]["unit"]
    return f"{input_price and f'{input_price} in, '}{_range([row['usd'] for row in rows], is_tokens)} USD / {unit}"


def _range(amounts: list[Any], is_tokens: bool) -> str:
    found = sorted({Decimal(str(amount)) * (1_000_000 if is_tokens else 1) for amount in amounts})
    texts = [
        f"{amount:.6f}".rstrip("0").rstrip(".") for amount in (found[:1] + found[-1:] if len(found) > 1 else found)
    ]
    return " to ".join(texts)
