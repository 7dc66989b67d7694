"""Which models there are, which providers serve each of them, and in which order they are tried.

Start with `catalog`, which finds the candidates of a model among the `known_providers`, and `routing`, which puts them
in order: by the caller's `preferences`, and by the `performance` and `health` of the providers. The models come from
the tables of `providers`, from penstock.toml (`configured` reads its tables, which `config_tables` describes, and
`own_models` the operator's workflows), from the catalogues of providers (`live_models`) and from servers of the
operator's own (`server_models`). `description` and `model_schema` show models to callers; `credentials` says what an
inactive provider lacks, and `shutdowns` which models will soon be gone.
"""
