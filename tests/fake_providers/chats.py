"""Chat providers on loopback, each with its unsupported fields and its form of errors."""

from collections.abc import Iterable
from typing import Any, ClassVar

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import FakeProvider, route


class FakeChatProvider(FakeProvider):
    credential: ClassVar[tuple[str, str] | None] = ("authorization", f"Bearer {KEY}")
    unknown: tuple[str, ...] = ()  # fields that it answers with an error
    roles: tuple[str, ...] = ("system", "user", "assistant", "tool")
    named = True  # messages may say who speaks

    @route("POST /{at*}/chat/completions")
    def chat(self, call: Exchange) -> FakeResponse:
        return self._respond(call.request.fields)

    def _respond(self, fields: dict[str, Any]) -> FakeResponse:
        found = [*(name for name in self.unknown if name in fields), *self._refused_parts(fields["messages"])]
        return self._refusal(found[0]) if found else self._complete(fields)

    def _refused_parts(self, messages: list[dict[str, Any]]) -> Iterable[str]:
        for message in messages:
            if message["role"] not in self.roles:
                yield "role"
            if "name" in message and not self.named:
                yield "name"

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        return chat.completion(fields, self.new_id("chatcmpl-"))[0]

    def _refusal(self, name: str) -> FakeResponse:
        details = {
            "message": f"`{name}` is not supported",
            "type": "invalid_request_error",
            "param": name,
            "code": None,
        }
        return FakeResponse({"error": details}, 400)


class Anthropic(FakeChatProvider):
    """Ignores unknown fields."""

    roles = (*FakeChatProvider.roles, "developer")


class Mistral(FakeChatProvider):
    unknown = ("seed", "user", "stream_options", "max_completion_tokens", "logit_bias")
    named = False

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        fields = {**fields, "stream_options": {"include_usage": True}}
        return chat.completion(fields, self.new_id("cmpl-"), joined=True)[0]

    def _refusal(self, name: str) -> FakeResponse:
        wrong = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 1}
        return FakeResponse({"detail": [wrong]}, 422)


class DeepSeek(FakeChatProvider):
    """Sends comments while it thinks, and reports cached tokens."""

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        response = chat.completion(fields, self.new_id("ds-"), more={"prompt_tokens_details": {"cached_tokens": 2}})[0]
        return (
            FakeResponse(events=[b": keep-alive", b": keep-alive", *response.events]) if response.events else response
        )


class Groq(FakeChatProvider):
    unknown = ("logprobs", "top_logprobs", "logit_bias")
    roles = (*FakeChatProvider.roles, "developer")
    named = False


class Ollama(FakeChatProvider):
    """Needs no key; has only the models that it has pulled."""

    credential = None
    unknown = ("tool_choice", "max_completion_tokens")

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        if fields["model"] != "gpt-oss:20b":
            details = {"message": f"model '{fields['model']}' not found", "type": "not_found_error", "param": None}
            return FakeResponse({"error": {**details, "code": None}}, 404)
        return super()._complete(fields)


class VLLM(FakeChatProvider):
    """Serves one model, and has a context of 512 tokens. Its error about a field is that of older versions."""

    credential = None
    unknown = ("top_k",)

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        if fields["model"] != "qwen/qwen3-8b":
            return self._error(404, f"The model `{fields['model']}` does not exist.", "NotFoundError", "model")
        if fields.get("max_tokens", 0) > 512:
            words = f"max_tokens={fields['max_tokens']} cannot be greater than max_model_len=512."
            return self._error(400, words, "BadRequestError", "max_tokens")
        return super()._complete(fields)

    @staticmethod
    def _error(status: int, message: str, kind: str, param: str) -> FakeResponse:
        details = {"message": message, "type": kind, "param": param, "code": status}
        return FakeResponse({"error": details}, status)

    def _refusal(self, name: str) -> FakeResponse:
        return FakeResponse(
            {"object": "error", "message": f"{name} cannot be had", "type": "BadRequestError", "code": 400}, 400
        )


class LlamaCpp(FakeChatProvider):
    """Answers 503 until its model is loaded, and 500 to an image, because its model cannot read any."""

    credential = None
    loading = False

    def _complete(self, fields: dict[str, Any]) -> FakeResponse:
        if self.loading:
            return FakeResponse({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
        if any(isinstance(message["content"], list) for message in fields["messages"]):
            message = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
            return FakeResponse({"error": {"code": 500, "message": message, "type": "server_error"}}, 500)
        return super()._complete(fields)
