"""AUTOMATIC1111's web UI on loopback, after its source: base64 in and out, images of 512 x 512 by default."""

import base64
import io

from PIL import Image

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import FakeProvider, route

AUTHORIZED = "Basic " + base64.b64encode(KEY.encode()).decode()


def text(width: int, height: int) -> str:
    return base64.b64encode(png(width, height)).decode()


class Automatic1111(FakeProvider):
    credential = ("authorization", AUTHORIZED)

    @route("POST /sdapi/v1/txt2img")
    def draw(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        made = [text(fields.get("width", 512), fields.get("height", 512))] * fields.get("n_iter", 1)
        grid = [text(8, 8)] if fields.get("save_images") and len(made) > 1 else []
        return FakeResponse({"images": [*grid, *made], "parameters": fields, "info": '{"seed": 7}'})

    @route("POST /sdapi/v1/img2img")
    def redraw(self, call: Exchange) -> FakeResponse:
        if not call.request.fields.get("init_images"):
            return FakeResponse(
                {"error": "HTTPException", "detail": "Init image not found", "body": "", "errors": ""}, 404
            )
        return self.draw(call)

    @route("POST /sdapi/v1/extra-single-image")
    def enlarge(self, call: Exchange) -> FakeResponse:
        fields = call.request.fields
        data = fields["image"].rpartition(",")[2]  # with or without the beginning of a data URI
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            width, height = image.size
        factor = fields["upscaling_resize"]
        return FakeResponse({"html_info": "", "image": text(int(width * factor), int(height * factor))})

    def unauthorized(self) -> FakeResponse:
        return FakeResponse({"detail": "Incorrect username or password"}, 401)
