"""How any provider is used.

`catalog` finds the providers that serve a model and the order to try them in, `translate` turns a request into the
provider's fields, and `client` sends it; `replies` checks what comes back. `health` counts failures, `configured` reads
providers from penstock.toml, `local` starts providers that answer inside this process, `model_schema` describes a
model's parameters, and `outcome` chooses the error when all candidates failed.
"""
