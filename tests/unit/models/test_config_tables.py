"""The tables of penstock.toml refuse what no model could mean."""

import pytest

from penstock.models.config_tables import KnownProviderModel, PriceTable
from penstock.typed_config import Misconfigured, convert


def test_a_price_is_said_once() -> None:
    assert convert({"unit": "image", "usd": "0.1"}, PriceTable, where="price").usd == "0.1"
    for written in ({"unit": "image"}, {"unit": "image", "usd": "1", "output_usd": "1"}):
        with pytest.raises(Misconfigured, match="needs usd or output_usd, and not both"):
            convert(written, PriceTable, where="price")


def test_a_model_is_the_operators_own_if_it_names_files_of_the_server() -> None:
    assert not convert({"id": "a", "like": "b"}, KnownProviderModel, where="model").is_own
    assert convert({"id": "a", "loras": {"x": 0.5}}, KnownProviderModel, where="model").is_own
