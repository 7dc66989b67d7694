"""A catalog of two small providers, and what tests make others of."""

from typing import Any

from penstock.models.catalog import Catalog
from penstock.providers import openai_compatible
from penstock.providers.spec import Model, Price, Provider, Source
from penstock.settings import Settings

PRICE = (Price(unit="image", usd="0.04", source=Source("test")),)
OPS = openai_compatible.OPERATIONS
IMAGE, EDIT, VIDEO, CHAT = ("image",), ("edit", "upscale"), ("video",), ("chat",)


def model(name: str, task: Any = "image", upstream: str = "", **fields: Any) -> Model:
    return Model(id=name, upstream=upstream or name, op=OPS[task], **{"prices": PRICE, **fields})


def provider(slug: str, *models: Model, **fields: Any) -> Provider:
    return Provider(slug=slug, name=slug.title(), docs="", base_url=f"https://{slug}.example", models=models, **fields)


ONE = provider(
    "one", model("fox", upstream="fox-v1", aliases=("vulpes",)), model("video-1", "video"), key_env="ONE_KEY"
)
TWO = provider("two", model("fox", upstream="acme/fox"), model("two/own"), retired={"old-fox": "fox"})
ROUTER = provider("hub", model("hub/*", "chat", "*"), model("hub/named", "chat", "named"))


def catalog(*providers: Provider, environ: dict[str, str] | None = None, **fields: Any) -> Catalog:
    return Catalog(providers or (ONE, TWO), Settings(**fields), {"ONE_KEY": "s3cr3t"} if environ is None else environ)
