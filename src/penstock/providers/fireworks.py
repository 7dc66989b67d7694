"""Fireworks AI: FLUX images, in one call or as jobs that are polled with POST, and open chat models."""

from collections.abc import Mapping

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, chat_models, chat_operation
from penstock.providers.convert import closest, data_uri, first_image, on_off
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import (
    LITELLM,
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
    complete_table,
    converted,
    fixed,
    ignored,
    passthrough,
)

STATUS: dict[str, Status] = {"Pending": "in_progress", "Ready": "completed"}  # all other states are failures
REFUSALS = ("Request Moderated", "Content Moderated")


def read_images(reply: Reply) -> Result:
    """Read images made in one call. An image that was refused for its content is blank, and has a finish reason."""
    response = reply.json
    finish_reason = response.get("finishReason", "SUCCESS")
    if finish_reason != "SUCCESS":
        return Result(
            status="failed",
            failure_kind="refused" if finish_reason == "CONTENT_FILTERED" else "broken",
            message=f"Fireworks made no image: {finish_reason}.",
        )
    images = response.get("base64") or ()
    files = tuple(File(data=image) for image in images)
    return Result(files=files, upstream_id=response.get("id"))


def read_job(reply: Reply) -> Result:
    job = reply.json
    if "request_id" in job:
        return Result(status="queued", ref={"id": job["request_id"]}, upstream_id=job["request_id"])
    url = (job.get("result") or {}).get("sample")
    state = job["status"]
    return Result(
        status=STATUS.get(state, "failed"),
        files=(File(url=url),) if url else (),
        failure_kind="refused" if state in REFUSALS else "broken",
        message=f"Fireworks made no image: {state}.",
    )


def job_id(ref: Mapping[str, str]) -> dict[str, str]:
    return {"id": ref["id"]}


PROMPT = passthrough("prompt", required=True)
SEED = passthrough("seed")
RATIO = converted(
    "frame",
    to="aspect_ratio",
    convert=closest(*"1:1 21:9 16:9 3:2 5:4 4:5 2:3 9:16 9:21 4:3 3:4".split()),
)
INPUT_IMAGE = converted("images", to="input_image", convert=first_image(data_uri), required=True, max_items=1)
KONTEXT_ROWS = (
    PROMPT,
    SEED,
    RATIO,
    fixed("output_format", "png"),
    converted("prompt_enhancement", to="prompt_upsampling", convert=on_off(True, False)),
)


def image_model(name: str, upstream: str, steps: int, usd: str) -> Model:
    """A model that makes images in one call. The price depends on the steps, so callers cannot set them."""
    op = Operation(
        task="image",
        send="POST /workflows/{model}/text_to_image",
        model_field=None,
        read=read_images,
        params=complete_table("image", PROMPT, SEED, RATIO, fixed("num_inference_steps", steps)),
        priced_extras=frozenset({"num_inference_steps", "steps"}),
    )
    return Model(id=name, upstream=upstream, op=op, prices=(Price(unit="image", usd=usd, source=LITELLM),), priority=20)


def kontext_model(name: str, task: Task, usd: str, *rows: Param) -> Model:
    """A model that makes or edits images as jobs."""
    op = Operation(
        task=task,
        send="POST /workflows/{model}",
        poll="POST /workflows/{model}/get_result",
        poll_body=job_id,
        poll_seconds=1.0,
        model_field=None,
        read=read_job,
        params=complete_table(task, *KONTEXT_ROWS, *rows),
    )
    return Model(
        id=name,
        upstream=f"accounts/fireworks/models/{name}",
        op=op,
        prices=(Price(unit="image", usd=usd, source=LITELLM),),
        priority=20,
    )


CHAT = chat_operation(DEVELOPER_AS_SYSTEM, *ignored("stream_options", "store"))
# Dollars for a million tokens of input, output and cached input; `chat_models` describes the columns.
CHAT_MODELS = """
    openai/gpt-oss-20b=accounts/fireworks/models/gpt-oss-20b    0.07  0.3   0.035
    z-ai/glm-5.3=accounts/fireworks/models/glm-5p3              1.4   4.4   0.26
    moonshotai/kimi-k3=accounts/fireworks/models/kimi-k3        3     15    0.3
    moonshotai/kimi-k2.5=accounts/fireworks/models/kimi-k2p5    0.6   3     0.1
    minimax/minimax-m3=accounts/fireworks/models/minimax-m3     0.3   1.2   0.06
    qwen/qwen3.7-plus=accounts/fireworks/models/qwen3p7-plus    0.4   1.6   0.08
    qwen/qwen3.8-max=accounts/fireworks/models/qwen3p8-max      2     6     0.25
"""

PROVIDER = Provider(
    slug="fireworks",
    name="Fireworks AI",
    docs="https://docs.fireworks.ai/api-reference",
    base_url="https://api.fireworks.ai/inference/v1",
    key_env="FIREWORKS_API_KEY",
    auth=bearer,
    headers={"accept": "application/json"},  # otherwise the response is an image without a finish reason
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        image_model("flux-schnell", "accounts/fireworks/models/flux-1-schnell-fp8", 4, "0.0014"),
        image_model("flux-dev", "accounts/fireworks/models/flux-1-dev-fp8", 28, "0.014"),
        kontext_model("flux-kontext-pro", "image", "0.04"),
        kontext_model("flux-kontext-pro", "edit", "0.04", INPUT_IMAGE),
        kontext_model("flux-kontext-max", "image", "0.08"),
        kontext_model("flux-kontext-max", "edit", "0.08", INPUT_IMAGE),
        *chat_models("fireworks", LITELLM, CHAT_MODELS, CHAT, priority=10),
    ),
)
