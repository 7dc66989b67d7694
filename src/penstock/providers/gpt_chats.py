"""OpenAI's GPT chat models at OpenAI's prices, for OpenAI itself and for Azure."""

from collections.abc import Mapping
from dataclasses import replace

from penstock.providers.chat_models import chat_models
from penstock.providers.spec import LITELLM, Model, Operation, renamed

MAX_TOKENS = renamed("max_tokens", to="max_completion_tokens")
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
TABLE = """
    gpt-6-astra    10    50    1      >272000  20   75    2
    gpt-6.1-sol    2     10    0.1    >272000  4    15    0.2
    gpt-6-sol      2     10    0.2    >272000  4    15    0.4
    gpt-6-luna     0.1   0.5   0.01   >272000  0.2  0.75  0.02
    gpt-5.6-sol    4     20    0.4    >272000  8    30    0.8
    gpt-5.6-terra  2     12    0.2    >272000  4    18    0.4
    gpt-5.6-luna   0.2   1.2   0.02   >272000  0.4  1.8   0.04
    gpt-5.5        5     30    0.5    >272000  10   45    1
    gpt-5.4        2.5   15    0.25   >272000  5    22.5  0.5
    gpt-5.4-mini   0.75  4.5   0.075
    gpt-5.4-nano   0.2   1.25  0.02
    gpt-5.2        1.75  14    0.175
    gpt-5.1        1.25  10    0.125
    gpt-4.1        2     8     0.5
    gpt-4.1-mini   0.4   1.6   0.1
    gpt-4o         2.5   10    1.25
    gpt-4o-mini    0.15  0.6   0.075
"""


def gpt_chats(owner: str, op: Operation, shutdown_dates: Mapping[str, str]) -> tuple[Model, ...]:
    """The models as one provider serves them. `shutdown_dates` are the days from which on it no longer does, by name;
    a name that no model has raises KeyError.
    """
    models = {model.upstream: model for model in chat_models(owner, LITELLM, TABLE, op)}
    for name, day in shutdown_dates.items():
        models[name] = replace(models[name], shutdown_date=day)
    return tuple(models.values())
