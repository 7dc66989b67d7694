"""Amazon Bedrock: Stability's image models and services, for an AWS account of your own.

The credential is a Bedrock API key; or keys of an account, `ACCESS_KEY_ID:SECRET_ACCESS_KEY` (and `:SESSION_TOKEN`),
with which requests are signed; or `aws-chain`, for the keys that AWS's own library finds: in its variables, in a
profile, or as the role of a machine, a container or a web identity. Signing needs the extra `bedrock`. The base URL
names the region. Amazon's own models Nova Canvas and Nova Reel were shut down on 2026-09-30.
"""

from dataclasses import replace
from typing import Any

from penstock.providers.bedrock import credentials
from penstock.providers.convert import first_image, plain_base64
from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Task,
    complete_table,
    converted,
    emulated,
    fixed,
    ignored,
    passthrough,
)
from penstock.providers.stable_images import (
    NEGATIVE_PROMPT,
    PROMPT,
    RATIO,
    SEED,
    STRENGTH,
    add_default_prompt,
    add_default_strength,
)

# Types of errors whose status alone is misleading: the model, or its access for this account, is the problem.
ERROR_KINDS: dict[str, FailureKind] = {
    "ModelErrorException": "down",
    "ModelNotReadyException": "busy",
    "ResourceNotFoundException": "broken",
}


def read_image(reply: Reply) -> Result:
    """Read an image. A refusal has status 200 and a finish reason in place of the image."""
    reason = next(filter(None, reply.json.get("finish_reasons") or ()), None)
    if reason:
        kind: FailureKind = "refused" if reason.startswith("Filter reason") else "broken"
        return Result(status="failed", failure_kind=kind, message=reason)
    files = tuple(File(data=image) for image in reply.json["images"])
    return Result(files=files, upstream_id=reply.headers.get("x-amzn-requestid"))


def error_message(reply: Reply) -> str | None:
    return str(reply.json.get("message") or reply.json["Message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return ERROR_KINDS.get(reply.headers.get("x-amzn-errortype", "").partition(":")[0])


def operation(task: Task, *rows: Param, output_format: str = "png", **fields: Any) -> Operation:
    return Operation(
        task=task,
        send="POST /model/{model}/invoke",
        read=read_image,
        model_field=None,
        params=complete_table(task, *rows, fixed("output_format", output_format)),
        **fields,
    )


GUIDED = (NEGATIVE_PROMPT, SEED)
INPUT_IMAGE = converted(
    "images", to="image", convert=first_image(plain_base64), required=True, max_items=1, max_bytes=18_000_000
)
MASK = converted("mask", to="mask", convert=plain_base64, required=True)

IMAGE = operation("image", PROMPT, *GUIDED, RATIO)
SD3 = operation("image", PROMPT, *GUIDED, RATIO, fixed("mode", "text-to-image"))
SD3_EDIT = operation(
    "edit",
    PROMPT,
    *GUIDED,
    INPUT_IMAGE,
    STRENGTH,
    fixed("mode", "image-to-image"),
    adjust_body=add_default_strength,
)
INPAINT = operation(
    "edit",
    PROMPT,
    *GUIDED,
    INPUT_IMAGE,
    MASK,
    passthrough("grow_mask", low=0, high=20),
    settings={"mask": "white"},
)
# A response has 16 MB at most, which the PNG of a large image exceeds.
FAST = operation("upscale", INPUT_IMAGE, emulated("scale_factor", one_of=(4,), default=4), output_format="jpeg")
CONSERVATIVE = operation(
    "upscale",
    replace(PROMPT, required=False),
    *GUIDED,
    INPUT_IMAGE,
    *ignored("scale_factor"),
    output_format="jpeg",
    adjust_body=add_default_prompt,
)
CREATIVE = replace(CONSERVATIVE, params=(*CONSERVATIVE.params, passthrough("creativity", low=0.1, high=0.5)))


def model(name: str, upstream: str, op: Operation, usd: str) -> Model:
    """A model of low priority, because it costs less at Stability itself."""
    price = Price(unit="image", usd=usd, source=LITELLM)
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=10)


PROVIDER = Provider(
    slug="bedrock",
    name="Amazon Bedrock",
    docs="https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-stability-diffusion.html",
    base_url="https://bedrock-runtime.us-west-2.amazonaws.com",
    key_env="AWS_BEARER_TOKEN_BEDROCK",
    auth=credentials.auth,
    sign=credentials.sign,
    key_problem=credentials.key_problem,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        model("sd3.5-large", "stability.sd3-5-large-v1:0", SD3, "0.08"),
        model("sd3.5-large", "stability.sd3-5-large-v1:0", SD3_EDIT, "0.08"),
        model("stability/ultra", "stability.stable-image-ultra-v1:1", IMAGE, "0.14"),
        model("stability/core", "stability.stable-image-core-v1:1", IMAGE, "0.04"),
        model("stability/inpaint", "us.stability.stable-image-inpaint-v1:0", INPAINT, "0.07"),
        model("stability/fast-upscale", "us.stability.stable-fast-upscale-v1:0", FAST, "0.03"),
        model("stability/conservative-upscale", "us.stability.stable-conservative-upscale-v1:0", CONSERVATIVE, "0.40"),
        model("stability/creative-upscale", "us.stability.stable-creative-upscale-v1:0", CREATIVE, "0.60"),
    ),
)
