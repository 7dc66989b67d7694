"""Models that end soon, or have ended, are found; each once, in the order of their ends."""

from dataclasses import replace
from datetime import date

from penstock.models.shutdowns import Shutdown, soon
from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model, Provider

MODEL = Model(id="a", upstream="a", op=OPERATIONS["image"], prices=())


def provider(slug: str, *models: Model) -> Provider:
    return Provider(slug=slug, name=slug, docs="", base_url="https://x.test", models=models)


def test_models_that_end_within_thirty_days_or_have_ended() -> None:
    ends = {"ended": "2026-11-01", "near": "2026-12-01", "far": "2027-04-01", "open": ""}
    models = [replace(MODEL, id=name, shutdown_date=day) for name, day in ends.items()]
    edit = replace(models[1], op=OPERATIONS["edit"])
    off = replace(MODEL, id="off", shutdown_date="2026-11-17", enabled=False)
    assert soon([provider("lab", *models, edit, off), provider("other", MODEL)], date(2026, 11, 16)) == [
        Shutdown("2026-11-01", "lab", "ended"),
        Shutdown("2026-12-01", "lab", "near"),
    ]
