"""List models."""

from typing import Any

from penstock.commands.terminal import Config, Data, load_settings, show
from penstock.environment import ENVIRONMENT
from penstock.providers import discover
from penstock.upstream.catalog import Catalog


def models(data: Data = None, config: Config = None) -> None:
    """List the models that this configuration serves."""
    catalog = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT)
    rows = [
        [model["id"], ", ".join(model["modes"]), ", ".join(model["providers"]), _price(model["pricing"])]
        for model in catalog.list()
    ]
    show("Models", ["id", "modes", "providers", "price"], rows)


def _price(pricing: list[dict[str, Any]]) -> str:
    """Return the first price as text."""
    if not pricing:
        return "unknown"
    first = pricing[0]
    input_price = f"{first['input_usd']} in, " if "input_usd" in first else ""
    return f"{input_price}{first['usd']} USD / {first['unit']}"
