"""Amazon Bedrock on loopback: Stability's models, which refuse a request that is not signed or has unknown fields."""

import base64
from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

FILTERED = {"finish_reasons": ["Filter reason: prompt"]}
ACCESS_KEY = "AKIAPENSTOCK"
COMMON = {"prompt", "negative_prompt", "seed", "output_format"}
# By a word in the model's name: the fields that it must get, and those that it may get.
FIELDS: Mapping[str, tuple[set[str], set[str]]] = {
    "sd3-5-large": ({"prompt"}, COMMON | {"mode", "aspect_ratio", "image", "strength"}),
    "stable-image-ultra": ({"prompt"}, COMMON | {"aspect_ratio"}),
    "stable-image-core": ({"prompt"}, COMMON | {"aspect_ratio"}),
    "stable-image-inpaint": ({"prompt", "image", "mask"}, COMMON | {"image", "mask", "grow_mask"}),
    "stable-fast-upscale": ({"image"}, {"image", "output_format"}),
    "stable-conservative-upscale": ({"prompt", "image"}, COMMON | {"image"}),
    "stable-creative-upscale": ({"prompt", "image"}, COMMON | {"image", "creativity", "style_preset"}),
}
RATIOS = {"1:1": (64, 64), "16:9": (128, 72)}


def error(status: int, kind: str, message: str) -> FakeResponse:
    return FakeResponse({"message": message}, status, headers={"x-amzn-errortype": f"{kind}:"})


class Bedrock(FakeProvider):
    """Takes a Bedrock API key, or a signature with the keys of an account."""

    keys_expire = "2999-01-01T00:00:00Z"

    @route("POST /model/{model}/invoke")
    def invoke(self, call: Exchange) -> FakeResponse:
        if not self._is_authentic(call.request):
            return error(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        model = call.params["model"].replace("%3A", ":")
        found = next((fields for name, fields in FIELDS.items() if f"stability.{name}-v1:" in model), None)
        if found is None:
            return error(404, "ResourceNotFoundException", "This model version has reached the end of its life.")
        needed, known = found
        fields: Any = call.request.fields
        if not needed <= fields.keys() <= known:
            return error(400, "ValidationException", f"Malformed input request: {sorted(fields.keys() ^ needed)}")
        if fields.get("mode") == "image-to-image" and "aspect_ratio" in fields:
            return error(400, "ValidationException", "aspect_ratio is not valid for image-to-image")
        shape = RATIOS[fields.get("aspect_ratio", "1:1")]
        data = base64.b64encode(png(*shape)).decode()
        body = {"seeds": [7], "finish_reasons": [None], "images": [data]}
        return FakeResponse(body, headers={"x-amzn-requestid": self.new_id("req")})

    @route("GET /credentials")
    def keys(self, call: Exchange) -> FakeResponse:
        """The keys of a role, as containers of AWS get them from an address of their own machine."""
        keys = {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": KEY, "Token": "a token of the role"}
        return FakeResponse({**keys, "Expiration": self.keys_expire})

    def _is_authentic(self, request: ReceivedRequest) -> bool:
        given = request.headers.get("authorization", "")
        return given in (f"Bearer {KEY}", self._signature(request))

    def _signature(self, request: ReceivedRequest) -> str:
        """What the signature of a request must be: of the headers that it says are signed, with the secret key."""
        signed = request.headers.get("authorization", "").partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: request.headers[name] for name in signed if name in request.headers and name != "host"}
        copy = AWSRequest(request.method, self.url + request.path, headers=headers, data=request.body)
        copy.context["timestamp"] = request.headers.get("x-amz-date", "")
        signer = SigV4Auth(Credentials(ACCESS_KEY, KEY), "bedrock", "us-west-2")
        text = signer.string_to_sign(copy, signer.canonical_request(copy))
        names = signer.signed_headers(signer.headers_to_sign(copy))
        return (
            f"AWS4-HMAC-SHA256 Credential={signer.scope(copy)}, SignedHeaders={names}, "
            f"Signature={signer.signature(text, copy)}"
        )
