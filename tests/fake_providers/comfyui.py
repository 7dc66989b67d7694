"""ComfyUI on loopback, after the source of version 0.7: it checks a graph's nodes, links and files before it queues it.

There is no client for these routes: comfy-sdk speaks to those under /api/v2, which not every server has.
"""

import json
from typing import Any

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import FakeProvider, Job, route

# Required inputs of built-in nodes, and what their outputs are.
NODES: dict[str, tuple[str, str]] = {
    "CheckpointLoaderSimple": ("ckpt_name", "MODEL CLIP VAE"),
    "UNETLoader": ("unet_name weight_dtype", "MODEL"),
    "CLIPLoader": ("clip_name type", "CLIP"),
    "VAELoader": ("vae_name", "VAE"),
    "ModelSamplingSD3": ("model shift", "MODEL"),
    "CLIPTextEncode": ("text clip", "CONDITIONING"),
    "EmptyLatentImage": ("width height batch_size", "LATENT"),
    "Wan22ImageToVideoLatent": ("vae width height length batch_size", "LATENT"),
    "VAEEncode": ("pixels vae", "LATENT"),
    "SetLatentNoiseMask": ("samples mask", "LATENT"),
    "KSampler": (
        "model seed steps cfg sampler_name scheduler positive negative latent_image denoise", "LATENT",
    ),
    "VAEDecode": ("samples vae", "IMAGE"),
    "LoadImage": ("image", "IMAGE MASK"),
    "UpscaleModelLoader": ("model_name", "UPSCALE_MODEL"),
    "ImageUpscaleWithModel": ("upscale_model image", "IMAGE"),
    "ImageScaleBy": ("image upscale_method scale_by", "IMAGE"),
    "CreateVideo": ("images fps", "VIDEO"),
    "SaveVideo": ("video filename_prefix format codec", ""),
    "PreviewImage": ("images", ""),
    "SaveImage": ("images filename_prefix", ""),
    "LoraLoader": ("model clip lora_name strength_model strength_clip", "MODEL CLIP"),
}  # fmt: skip
TAKES = {
    "model": "MODEL", "clip": "CLIP", "vae": "VAE", "positive": "CONDITIONING", "negative": "CONDITIONING",
    "latent_image": "LATENT", "samples": "LATENT", "mask": "MASK", "pixels": "IMAGE", "images": "IMAGE",
    "start_image": "IMAGE", "upscale_model": "UPSCALE_MODEL", "video": "VIDEO",
}  # fmt: skip


class ComfyUI(FakeProvider):
    """Behind a proxy that checks a credential; ComfyUI itself has none."""

    credential = ("authorization", f"Bearer {KEY}")
    usual = ("pending", "in_progress", "completed")

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[str, bytes] = {}
        self.lacks: set[str] = set()  # files of models
        self.cached: set[str] = set()  # graphs whose outputs it has; it lists those only for a caller with a client_id
        # What versions before 0.7 answer, which have no route for the state of a job; it depends on their web server.
        self.no_jobs: bytes | None = None
        self._made: dict[str, bytes] = {}

    @route("POST /upload/image")
    def upload(self, call: Exchange) -> FakeResponse:
        body = call.request.body
        name = body.partition(b'filename="')[2].partition(b'"')[0].decode()
        self.images[f"{name} [{call.request.fields['type']}]"] = call.request.fields["image"]
        return FakeResponse({"name": name, "subfolder": "", "type": call.request.fields["type"]})

    @route("POST /prompt")
    def queue(self, call: Exchange) -> FakeResponse:
        graph = call.request.fields["prompt"]
        wrong = {name: errors for name, node in graph.items() if (errors := self._wrong(node, graph))}
        if wrong:
            details = {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"}
            nodes = {
                name: {"errors": errors, "class_type": graph[name]["class_type"]} for name, errors in wrong.items()
            }
            return FakeResponse({"error": {**details, "details": "", "extra_info": {}}, "node_errors": nodes}, 400)
        written = json.dumps(graph, sort_keys=True)
        is_listed = written not in self.cached or "client_id" in call.request.fields
        self.cached.add(written)
        job = self.begin({"graph": graph, "seen": "pending", "listed": is_listed}, prefix="3f9c1c1e-")
        job.fields["seen"] = job.next_state()
        return FakeResponse({"prompt_id": job.id, "number": len(self.jobs), "node_errors": {}})

    @route("GET /api/jobs/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if self.no_jobs is not None:
            return FakeResponse(file=self.no_jobs, content_type="text/plain", status=404)
        if job is None:
            return FakeResponse({"error": "Job not found"}, 404)
        state: Any = job.next_state()
        details = state if isinstance(state, dict) else {"status": state}
        job.fields["seen"] = details["status"]
        listed = self._outputs(job) if job.fields["listed"] else {}
        made = {"outputs": listed} if details["status"] == "completed" and "outputs" not in details else {}
        return FakeResponse({"id": job.id, "priority": 0, "create_time": 1763175600000, **made, **details})

    @route("POST /queue")
    def forget(self, call: Exchange) -> FakeResponse:
        for name in call.request.fields.get("delete", ()):
            if self.jobs[name].fields["seen"] == "pending":
                del self.jobs[name]
        return FakeResponse({})

    @route("POST /interrupt")
    def interrupt(self, call: Exchange) -> FakeResponse:
        """Requires the job's id; without it ComfyUI would stop any running job."""
        name = call.request.fields.get("prompt_id")
        for job in self.jobs.values():
            if job.fields["seen"] == "in_progress" and name in (None, job.id):
                job.cancel({"status": "failed", "outputs": {}})
        return FakeResponse({})

    @route("GET /view")
    def view(self, call: Exchange) -> FakeResponse:
        name = call.request.path.partition("filename=")[2].partition("&")[0]
        data = self._made.get(name)
        kind = "video/mp4" if name.endswith("mp4") else "image/png"
        return FakeResponse(file=data, content_type=kind) if data else FakeResponse({}, 404)

    def _wrong(self, node: dict[str, Any], graph: dict[str, Any]) -> list[dict[str, Any]]:
        inputs = node["inputs"]
        needed = NODES[node["class_type"]][0].split()
        errors: list[tuple[str, Any]] = [
            (f"Required input is missing: {name}", None) for name in needed if name not in inputs
        ]
        for name, value in inputs.items():
            if isinstance(value, list):
                made = NODES[graph[value[0]]["class_type"]][1].split()[value[1]] if value[0] in graph else "nothing"
                if made != TAKES.get(name, "IMAGE"):
                    errors.append((f"Return type mismatch: {name}, {made}", value))
            elif node["class_type"] == "LoadImage" and value not in self.images:
                errors.append(("Invalid image file", value))
            elif value in self.lacks:
                errors.append(("Value not in list", value))
        return [
            {
                "type": "invalid",
                "message": message,
                "details": f"not in {sorted(self.images)}",
                "extra_info": {"input_config": [sorted(self.images)], "received_value": value},
            }
            for message, value in errors
        ]

    def _outputs(self, job: Job) -> dict[str, Any]:
        graph = job.fields["graph"]
        sizes = [node["inputs"] for node in graph.values() if "width" in node["inputs"]]
        size = sizes[0] if sizes else {}
        video = any(node["class_type"] == "SaveVideo" for node in graph.values())
        data = mp4() if video else png(size.get("width", 96) // 8, size.get("height", 64) // 8)
        names = [self.new_id("penstock_") + (".mp4" if video else ".png") for _ in range(size.get("batch_size", 1))]
        self._made |= dict.fromkeys(names, data)
        folder = {"subfolder": "video", "type": "output"} if video else {"subfolder": "", "type": "temp"}
        return {"result": {"images": [{"filename": name, **folder} for name in names], "animated": [video]}}
