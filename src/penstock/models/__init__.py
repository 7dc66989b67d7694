"""Which models there are, which providers serve each of them, and in which order they are tried.

Start with `catalog`, which finds the providers of a model among the `known_providers`, and `routing`, which decides who
of them is asked first: by the caller's `preferences`, and by the `performance` and `health` of the providers. The
models come from the tables of `providers`, from penstock.toml (`configured`), from the catalogues of providers
(`live_models`) and from servers of the operator's own (`server_models`). `description` and `model_schema` show models
to callers.
"""
