"""The HTTP/1.1 server: strict, patient with slow callers only within limits, quick to notice that one has left.

Start with `server`, which listens, serves and stops. Each caller has a `connection`, one of the `open_connections`:
`request_head` refuses what two servers could read differently, `response_cycle` runs the ASGI application for a
request, `response_transport` sends what it responds, and `transfer_speed` measures whether the caller keeps up.
`addresses` finds who the caller is, also behind proxies.
"""
