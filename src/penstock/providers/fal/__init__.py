"""fal: models of many providers behind one queue; only the result of a finished job says whether it failed."""

from penstock.providers.fal import hunyuan, images, live, queue, references, veo, videos
from penstock.providers.spec import Provider, header

PROVIDER = Provider(
    slug="fal",
    name="fal",
    docs="https://fal.ai/docs",
    base_url="https://queue.fal.run",
    key_env="FAL_KEY",
    auth=header("authorization", "Key "),
    error_message=queue.error_message,
    failure_kind=queue.failure_kind,
    models=(*images.MODELS, *videos.MODELS, *veo.MODELS, *hunyuan.MODELS, *references.MODELS),
    live=live.CATALOGUE,
    # The gateway stores files at once, so fal may delete them after a day.
    headers={"x-fal-object-lifecycle-preference": '{"expiration_duration_seconds": 86400}'},
    # No callback key: fal signs callbacks with Ed25519 and keys from rest.fal.ai, not as Standard Webhooks.
)
