"""Which models there are, which providers serve each of them, and in which order they are tried.

Start with `catalog`, which finds the providers of a model. Its models come from the tables of `providers`, from
penstock.toml (`configured`), from the catalogues of providers (`live_models`) and from servers of the operator's own
(`server_models`). `selection` leaves out and sorts candidates by the caller's `preferences`, by their `performance` and
by their `health`. `description` and `model_schema` show models to callers.
"""
