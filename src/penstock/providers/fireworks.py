"""Fireworks AI: FLUX pictures, at once or as jobs that are asked after with POST, and open chat models."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.convert import closest, data_uri, first_image, on_off
from penstock.providers.chats import ONE_VOICE, chats, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    Task,
    bearer,
    converted,
    fixed,
    ignored,
    passthrough,
    complete_table,
)

STATUS: dict[str, Status] = {"Pending": "in_progress", "Ready": "completed"}  # whatever else it says is a failure
MODERATED = ("Request Moderated", "Content Moderated")
NOTE = "public price table, 2026-11"


def read_at_once(reply: Reply) -> Result:
    """A filtered picture comes back blank."""
    answer = reply.json
    if answer.get("finishReason", "SUCCESS") != "SUCCESS":
        filtered = answer["finishReason"] == "CONTENT_FILTERED"
        words = f"Fireworks made no image: {answer['finishReason']}."
        return Result(status="failed", failure_kind="refused" if filtered else "broken", message=words)
    pictures = answer.get("base64") or ()
    files = tuple(File(data=one.rpartition(",")[2]) for one in pictures)  # some come as whole data URIs
    return Result(files=files, upstream_id=answer.get("id"))


def read_job(reply: Reply) -> Result:
    job = reply.json
    if "request_id" in job:
        return Result(status="queued", ref={"id": job["request_id"]}, upstream_id=job["request_id"])
    sample = (job.get("result") or {}).get("sample")
    told = job["status"]
    return Result(
        status=STATUS.get(told, "failed"),
        files=(File(url=sample),) if sample else (),
        failure_kind="refused" if told in MODERATED else "broken",
        message=f"Fireworks made no image: {told}.",
    )


def named(ref: Mapping[str, str]) -> Any:
    return {"id": ref["id"]}


RATIO = converted("frame", "aspect_ratio", closest(*"1:1 21:9 16:9 3:2 5:4 4:5 2:3 9:16 9:21 4:3 3:4".split()))
PROMPT = passthrough("prompt", required=True)
# It follows the caller's tastes in all but the number of steps, which are what it charges for.
PRICED = frozenset({"num_inference_steps", "steps"})


def paints(name: str, upstream: str, steps: int, usd: str) -> Model:
    op = Operation(
        task="image",
        send="POST /workflows/{model}/text_to_image",
        model_field=None,
        read=read_at_once,
        params=complete_table("image", PROMPT, RATIO, fixed("num_inference_steps", steps)),
        priced_extras=PRICED,
    )
    return Model(id=name, upstream=upstream, op=op, prices=(Price(unit="image", usd=usd, note=NOTE),), priority=20)


def kontext(name: str, usd: str) -> tuple[Model, ...]:
    rows: tuple[Param, ...] = (
        PROMPT,
        RATIO,
        fixed("output_format", "png"),
        converted("prompt_enhancement", "prompt_upsampling", on_off(True, False)),
    )
    given = converted("images", "input_image", first_image(data_uri), required=True, max_items=1)
    kinds: tuple[tuple[Task, tuple[Param, ...]], ...] = (("image", rows), ("edit", (*rows, given)))
    return tuple(
        Model(
            id=name,
            upstream=f"accounts/fireworks/models/{name}",
            priority=20,
            prices=(Price(unit="image", usd=usd, note=NOTE),),
            op=Operation(
                task=task,
                send="POST /workflows/{model}",
                poll="POST /workflows/{model}/get_result",
                poll_body=named,
                poll_seconds=1.0,
                model_field=None,
                read=read_job,
                params=complete_table(task, *table),
            ),
        )
        for task, table in kinds
    )


PROVIDER = Provider(
    slug="fireworks",
    name="Fireworks AI",
    docs="https://docs.fireworks.ai/api-reference",
    base_url="https://api.fireworks.ai/inference/v1",
    key_env="FIREWORKS_API_KEY",
    auth=bearer,
    headers={"accept": "application/json"},  # or else pictures come as they are, without a word about them
    error_message=error_text,
    failure_kind=error_kind,
    models=(
        paints("flux-schnell", "accounts/fireworks/models/flux-1-schnell-fp8", 4, "0.0014"),
        paints("flux-dev", "accounts/fireworks/models/flux-1-dev-fp8", 28, "0.014"),
        *kontext("flux-kontext-pro", "0.04"),
        *kontext("flux-kontext-max", "0.08"),
        *chats(
            "fireworks",
            NOTE,
            """
            openai/gpt-oss-20b=accounts/fireworks/models/gpt-oss-20b    0.07  0.3   0.035
            z-ai/glm-5.3=accounts/fireworks/models/glm-5p3              1.4   4.4   0.26
            moonshotai/kimi-k3=accounts/fireworks/models/kimi-k3        3     15    0.3
            moonshotai/kimi-k2.5=accounts/fireworks/models/kimi-k2p5    0.6   3     0.1
            minimax/minimax-m3=accounts/fireworks/models/minimax-m3     0.3   1.2   0.06
            qwen/qwen3.7-plus=accounts/fireworks/models/qwen3p7-plus    0.4   1.6   0.08
            qwen/qwen3.8-max=accounts/fireworks/models/qwen3p8-max      2     6     0.25
        """,
            talk(ONE_VOICE, *ignored("stream_options", "store")),
            priority=10,
        ),
    ),
)
