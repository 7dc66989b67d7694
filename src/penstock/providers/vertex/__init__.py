"""Google Vertex AI: Gemini images and speech, Veo and Lyria, for a service account of your own Google Cloud project.

The credential is the service account's key file as Google Cloud provides it. The base URL names project and region:
`https://us-central1-aiplatform.googleapis.com/v1/projects/NAME/locations/us-central1`; Gemini needs
`https://aiplatform.googleapis.com/v1/projects/NAME/locations/global`. The Gemini API, which takes a plain key, stopped
serving Veo on 2026-10-22; Vertex AI does not serve Veo to plain keys. Imagen was shut down on both.
"""

from penstock.providers import gemini_images
from penstock.providers.openai_compatible import error_message
from penstock.providers.spec import Provider
from penstock.providers.vertex import credentials, gemini, sounds, veo

PROVIDER = Provider(
    slug="vertex",
    name="Google Vertex AI",
    docs="https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/veo-video-generation",
    base_url="https://aiplatform.googleapis.com/v1/projects/NAME/locations/global",
    base_url_env="VERTEXAI_URL",
    key_env="VERTEXAI_CREDENTIALS",
    auth=credentials.auth,
    error_message=error_message,
    failure_kind=sounds.failure_kind,
    models=(*gemini.MODELS, *veo.MODELS, *sounds.MODELS),
    retired={
        **gemini_images.RETIRED,
        **dict.fromkeys(("veo-2", "veo-3"), "veo-3.1"),
        "veo-3-fast": "veo-3.1-fast",
    },
)
