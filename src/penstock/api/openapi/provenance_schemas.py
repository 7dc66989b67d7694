"""The JSON Schemas of what is said about the origin of files."""

from penstock.api.openapi.schema_parts import FLAG, TEXT, always, array, closed_object, one_of, or_null
from penstock.provenance.verdict import EXPLANATIONS

_LINK = closed_object(
    {"manifest": TEXT, "state": TEXT, "actions": array(TEXT)},
    optional={
        "signer": TEXT,
        "relationship": TEXT,
        "signed_at": TEXT,
        "digital_source_type": TEXT,
        "model": TEXT,
        "request_id": TEXT,
    },
)
_FOUND = {
    "object": always("verification"),
    "verdict": one_of(*EXPLANATIONS),
    "explanation": TEXT,
    "sha256": TEXT,
    "content_type": or_null(TEXT),
    "credentials": or_null(
        closed_object(
            {
                "state": one_of("Trusted", "Valid", "Invalid"),
                "signer": or_null(TEXT),
                "trusted": FLAG,
                "signed_at": or_null(TEXT),
                "manifest": or_null(TEXT),
                "problems": array(TEXT),
                "chain": array(_LINK),
            }
        )
    ),
    "marks": closed_object({"digital_source_type": or_null(TEXT), "aigc": FLAG}),
}
VERIFICATION = closed_object({**_FOUND, "request_id": or_null(TEXT)})
PUBLIC_VERIFICATION = closed_object(_FOUND)
