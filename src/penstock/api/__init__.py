"""The HTTP API: routes, the server, and one file per resource.

Start with `routes`, which lists every path. `server` and `connection` accept connections, `asgi` runs the endpoint of a
call, `body`, `multipart` and `query` read what a caller sent, `responses` and `problems` send the result. `openapi`
describes it all from the same rows that route and check calls.
"""
