"""Parts of calls of OpenAI's Responses API."""

import base64
from typing import Any

from tests.fake_providers.scripted import png

PATH = "/compat/v1/responses"
DATA_URI = f"data:image/png;base64,{base64.b64encode(png(16, 16)).decode()}"
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
