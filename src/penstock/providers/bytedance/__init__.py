"""ByteDance ModelArk: Seedream images, made in one call, and Seedance videos, as tasks that are billed by the token."""

from penstock.providers.bytedance import errors, images, videos
from penstock.providers.spec import Provider, bearer

PROVIDER = Provider(
    slug="bytedance",
    name="ByteDance",
    docs="https://docs.byteplus.com/en/docs/ModelArk",
    base_url="https://ark.ap-southeast.bytepluses.com/api/v3",
    key_env="ARK_API_KEY",
    auth=bearer,
    failure_kind=errors.failure_kind,
    models=(*images.MODELS, *videos.MODELS),
)
