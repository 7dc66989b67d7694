"""The HTTP API: routes, and the ASGI application that runs their endpoints.

Start with `routes`, which lists every path. `asgi` runs the endpoint of a call, `body`, `multipart` and `query` read
what a caller sent, `responses` and `problems` send the result. `endpoints` has one file per resource, `openapi`
describes it all from the same rows that route and check calls.
"""
