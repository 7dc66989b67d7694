"""Google's Veo on Vertex AI, for a service account of one's own project; a refusal is a success without films.

The credential is the account's key file as it was downloaded, the address that of project and region:
`https://us-central1-aiplatform.googleapis.com/v1/projects/NAME/locations/us-central1`. On the Gemini API, where a plain
key would do, Veo was shut down on 2026-10-22; here a plain key opens other doors than Veo's.
"""

from penstock.providers.compatible import error_text
from penstock.providers.spec import Provider
from penstock.providers.vertex import account, veo

PROVIDER = Provider(
    slug="vertex",
    name="Google Vertex AI",
    docs="https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/veo-video-generation",
    base_url="https://aiplatform.googleapis.com/v1/projects/NAME/locations/global",
    base_url_env="VERTEXAI_URL",
    key_env="VERTEXAI_CREDENTIALS",
    auth=account.auth,
    error_message=error_text,
    failure_kind=veo.kind,
    models=veo.MODELS,
    retired=dict.fromkeys(("veo-2", "veo-3"), "veo-3.1") | {"veo-3-fast": "veo-3.1-fast"},
)
