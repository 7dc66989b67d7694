"""Parameter tables from the JSON Schemas that providers publish about their models.

Start with `table`. `draft` holds the fields of a schema that nobody has recognised yet; `inputs` takes input images out
of it, `shapes` size and length, and `table` the rest.
"""
