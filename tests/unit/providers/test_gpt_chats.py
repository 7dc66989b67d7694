"""GPT chat models of several providers."""

import pytest

from penstock.providers.chat_models import chat_operation
from penstock.providers.gpt_chats import gpt_chats


def test_providers_differ_only_in_the_days_of_the_end() -> None:
    models = gpt_chats("theirs", chat_operation(), {"gpt-5.1": "2027-05-15"})
    assert {model.id: model.shutdown_date for model in models if model.shutdown_date} == {
        "theirs/gpt-5.1": "2027-05-15"
    }
    others = gpt_chats("others", chat_operation(), {})
    assert [(model.upstream, model.prices) for model in models] == [(model.upstream, model.prices) for model in others]


def test_a_day_for_a_model_that_is_not_in_the_table_is_noticed() -> None:
    with pytest.raises(KeyError, match="gpt-50"):
        gpt_chats("theirs", chat_operation(), {"gpt-50": "2027-05-15"})
