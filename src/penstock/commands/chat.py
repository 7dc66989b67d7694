"""Chat from the command line."""

from typing import Annotated, Any

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import (
    DryRun,
    Fields,
    Model,
    default_model,
    given,
    image_url,
    parse_fields,
    print_estimate,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, print_json, read_stdin, say, usd

_PATH = "/compat/v1/chat/completions"


def chat(
    prompt: Annotated[str | None, typer.Argument(help="What to say; text on stdin is added after it.")] = None,
    model: Model = None,
    system: Annotated[str | None, typer.Option(help="Instructions for the model.")] = None,
    images: Annotated[list[str] | None, typer.Option("--input", "-i", help="Image file or HTTPS URL.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Maximum tokens in the response.")] = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Send a message to a chat model, and print its response while it arrives."""
    gateway = find_gateway(url, key, data, config)
    body = {
        "model": model or default_model(gateway, "chat"),
        "messages": _messages(prompt, system, images or []),
        **given({"max_tokens": max_tokens}),
        **parse_fields(fields),
    }
    if dry_run:
        print_estimate(gateway.post(_PATH, body, dryRun=True), as_json)
    elif as_json:
        print_json(gateway.post(_PATH, body).body)
    else:
        _print_stream(gateway, body)


def _messages(prompt: str | None, system: str | None, images: list[str]) -> list[dict[str, Any]]:
    piped = None if "-" in images else read_stdin()
    text = "\n\n".join(part.strip() for part in (prompt, piped) if part and part.strip())
    if not text:
        raise CallFailed("there is no message: give it as an argument or on stdin")
    content: Any = text
    if images:
        parts = [{"type": "image_url", "image_url": {"url": image_url(image)}} for image in images]
        content = [{"type": "text", "text": text}, *parts]
    instructions = [{"role": "system", "content": system}] if system else []
    return [*instructions, {"role": "user", "content": content}]


def _print_stream(gateway: GatewayClient, body: dict[str, Any]) -> None:
    """Print a streamed response as it arrives, then its tokens and its cost."""
    request_id = ""
    tokens = 0
    for event in gateway.stream_events(_PATH, {**body, "stream": True, "stream_options": {"include_usage": True}}):
        request_id = event.request_id
        for choice in event.body.get("choices") or ():
            typer.echo(choice["delta"].get("content") or "", nl=False)
        tokens = (event.body.get("usage") or {}).get("total_tokens", tokens)
    typer.echo()
    cost = gateway.get_request(request_id).body["cost"]
    say(f"{body['model']}, {tokens} tokens, {usd(cost)}, request {request_id}")
