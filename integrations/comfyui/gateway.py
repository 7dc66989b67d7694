"""Calls of a Penstock gateway for nodes, with the standard library only: nothing has to be installed into ComfyUI."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from contextlib import suppress

IMAGES = "/compat/v1/images"
VIDEOS = "/compat/v1/videos"
SOUNDS = "/compat/v1/audio"
PAUSES = (0.5, 1, 2, 4, 8)  # before a call is sent again that got no answer
TEMPORARY = (408, 429, 500, 502, 503, 504)
POLL_SECONDS = 1
MODELS_SECONDS = 60  # a list of models is used so long


class Refused(Exception):
    """The gateway refused a call, or there is none; ComfyUI shows the message at the node."""


class Gateway:
    """The gateway of PENSTOCK_URL and PENSTOCK_KEY. The key is not in a workflow, because workflows are shared."""

    def __init__(self):
        self._models = (0.0, [])

    def models(self, modes):
        """The ids of the models with one of these modes. Without a gateway: none, so that the editor loads anyway."""
        read_at, models = self._models
        if time.monotonic() - read_at > MODELS_SECONDS or not models:
            try:
                models = _json(_send("GET", "/compat/v1/models", seconds=5, pauses=()))["data"]
            except Refused:
                models = []
            self._models = (time.monotonic(), models)
        return [model["id"] for model in models if modes.intersection(model.get("modes", ()))]

    def make(self, path, body, max_usd, check, on_progress):
        """Make something that costs `max_usd` at most, and return the gateway's answer and the files.

        `check` raises an exception when the user stops the workflow; what was started is cancelled then.
        """
        body = {name: value for name, value in body.items() if value not in (None, "")}
        price = _json(_send("POST", f"{path}?dryRun=true", body))["total_cost_micros"] / 1e6
        if price > max_usd:
            raise Refused(f"{body['model']} may cost up to ${price:.4f}, which is more than max_usd, ${max_usd:.4f}.")
        headers = {"Idempotency-Key": f"comfy_{uuid.uuid4().hex}"}
        if path != VIDEOS:
            headers["Prefer"] = "respond-async"
        state = _json(_send("POST", path, body, headers))
        state = _wait(f"{_shown_at(path)}/{state['id']}", state, check, on_progress)
        outputs = state.get("data") or state.get("outputs") or [state["output"]]
        return state, [_file(output["url"]) for output in outputs]


def _wait(path, state, check, on_progress):
    try:
        while not any(state.get(name) for name in ("data", "output", "error")):
            check()
            time.sleep(POLL_SECONDS)
            state = _json(_send("GET", path))
            on_progress(state.get("progress") or 0)
    except Refused:
        raise
    except BaseException:  # the user stopped the workflow
        with suppress(Refused):
            _send("DELETE", path)
        raise
    if error := state.get("error"):
        raise Refused(f"{error['message']} ({error['code']})")
    return state


def _shown_at(path):
    """Where what a call has started can be polled."""
    if path.startswith(SOUNDS):
        return f"{SOUNDS}/generations"
    return VIDEOS if path == VIDEOS else IMAGES


def _send(method, path, body=None, headers=None, *, seconds=600, pauses=PAUSES):
    """Send a call, again if that cannot cost anything more, and return the body of the answer."""
    url = os.environ.get("PENSTOCK_URL", "http://127.0.0.1:8080").rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise Refused("PENSTOCK_URL must begin with http:// or https://.")
    if not (key := os.environ.get("PENSTOCK_KEY")):
        raise Refused("Set PENSTOCK_KEY to a key of your gateway before you start ComfyUI.")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers or {}, method=method)  # noqa: S310 - it was checked
    request.add_header("Content-Type", "application/json")
    request.add_unredirected_header("Authorization", f"Bearer {key}")
    may_repeat = method != "POST" or "Idempotency-Key" in (headers or {})
    for pause in (*pauses, None):
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                return answer.read()
        except urllib.error.HTTPError as problem:
            again = problem.headers.get("x-should-retry", "true") == "true" and problem.code in TEMPORARY
            if not (may_repeat and again) or pause is None:
                raise Refused(_message(problem)) from None
        except OSError as problem:
            if not may_repeat or pause is None:
                raise Refused(f"No gateway answers at {url}: {problem}") from None
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _json(content):
    try:
        return json.loads(content)
    except ValueError:
        raise Refused("What answers at PENSTOCK_URL is not a Penstock gateway.") from None


def _message(problem):
    try:
        error = json.loads(problem.read())["error"]
        return f"{error['message']} ({error['code']})"
    except (ValueError, KeyError, TypeError):
        return f"What answers at PENSTOCK_URL is not a Penstock gateway: status {problem.code}."


def _file(url):
    """The file at a signed URL, which gets no key."""
    if not url.startswith(("http://", "https://")):
        raise Refused("The gateway gave no URL for the file.")
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:  # noqa: S310 - checked
            return answer.read()
    except OSError as problem:
        raise Refused(f"The file could not be read: {problem}") from None
