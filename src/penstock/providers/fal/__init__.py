"""fal: models of many makers behind one queue, whose finished jobs tell only with the result whether they went well."""

from penstock.providers.fal import images, queue, videos
from penstock.providers.spec import Provider, header

PROVIDER = Provider(
    slug="fal",
    name="fal",
    docs="https://fal.ai/docs",
    base_url="https://queue.fal.run",
    key_env="FAL_KEY",
    auth=header("authorization", "Key "),
    error_message=queue.error,
    failure_kind=queue.kind,
    models=(*images.MODELS, *videos.MODELS),
    # Files are copied as soon as they are made; fal need not keep them for longer than a day. Its callbacks are signed
    # with Ed25519 (keys at rest.fal.ai): request id, user id, timestamp and the body's SHA-256 in hex, a line each.
    headers={"x-fal-object-lifecycle-preference": '{"expiration_duration_seconds": 86400}'},
)
