"""Azure OpenAI: OpenAI's models at OpenAI's prices, with shutdown dates of their own."""

from dataclasses import replace

from penstock.providers.chat_models import chat_models, chat_operation
from penstock.providers.gpt_images import (
    FREE_SIZE,
    IMAGE_15,
    IMAGE_1_MINI,
    IMAGE_2,
    IMAGE_25,
    THREE_SIZES,
    UP_TO_MAX,
    image_models,
)
from penstock.providers.spec import LITELLM, Model, renamed

PATH = "/openai/v1"
CHAT = chat_operation(
    renamed("max_tokens", to="max_completion_tokens"),
    send=f"POST {PATH}/chat/completions",
    responses=f"POST {PATH}/responses",
)
CHAT_MODELS = """
    gpt-6-astra    10    50    1      >272000  20   75    2
    gpt-6.1-sol    2     10    0.1    >272000  4    15    0.2
    gpt-6-sol      2     10    0.2    >272000  4    15    0.4
    gpt-6-luna     0.1   0.5   0.01   >272000  0.2  0.75  0.02
    gpt-5.6-sol    4     20    0.4    >272000  8    30    0.8
    gpt-5.6-terra  2     12    0.2    >272000  4    18    0.4
    gpt-5.6-luna   0.2   1.2   0.02   >272000  0.4  1.8   0.04
    gpt-5.5        5     30    0.5    >272000  10   45    1    until 2027-10-26
    gpt-5.4        2.5   15    0.25   >272000  5    22.5  0.5  until 2027-09-02
    gpt-5.4-mini   0.75  4.5   0.075  until 2027-09-21
    gpt-5.4-nano   0.2   1.25  0.02   until 2027-09-21
    gpt-5.2        1.75  14    0.175  until 2027-06-08
    gpt-5.1        1.25  10    0.125  until 2027-05-15
    gpt-4.1        2     8     0.5    until 2027-04-14
    gpt-4.1-mini   0.4   1.6   0.1    until 2027-04-14
    gpt-4o         2.5   10    1.25   until 2027-04-14
    gpt-4o-mini    0.15  0.6   0.075  until 2027-04-14
"""


def on_azure(model: Model) -> Model:
    """A model as Azure serves it, of lower priority than OpenAI's own."""
    method, path = model.op.send.split()
    return replace(model, op=replace(model.op, send=f"{method} {PATH}{path}"), priority=10)


IMAGES = (
    *image_models("gpt-image-2.5-sunburst", FREE_SIZE, IMAGE_25, UP_TO_MAX, shutdown_date="2027-09-09"),
    *image_models("gpt-image-2.5-flare", FREE_SIZE, IMAGE_25, UP_TO_MAX, shutdown_date="2027-09-09"),
    *image_models("gpt-image-2", FREE_SIZE, IMAGE_2, shutdown_date="2027-10-21"),
    *image_models("gpt-image-1.5", THREE_SIZES, IMAGE_15, shutdown_date="2026-12-16"),
    *image_models("gpt-image-1-mini", THREE_SIZES, IMAGE_1_MINI, shutdown_date="2027-04-07"),
)
MODELS = (*map(on_azure, IMAGES), *chat_models("azure", LITELLM, CHAT_MODELS, CHAT))
