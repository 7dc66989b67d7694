"""The OpenAPI document, built from the rows that route and check calls.

Start with `document`. `request_schemas`, `response_schemas` and `account_schemas` describe bodies, made of
`schema_parts`; `operations` has the words for each path, and `code_samples` writes the calls of the examples.
"""
