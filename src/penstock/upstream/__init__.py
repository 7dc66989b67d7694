"""How any provider is used.

`catalog` knows which providers serve a model and in which order, `translate` turns a request into the provider's
fields, and `client` sends it and reads the answer. `health` remembers how calls went, `configured` reads providers
from penstock.toml, `model_schema` describes a model's parameters, and `outcome` chooses the error when all candidates
failed.
"""
