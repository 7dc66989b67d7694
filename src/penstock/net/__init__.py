"""Outgoing HTTP.

`client` sends requests: most with `http1`, whose `connection`s belong to the event loop, and unusual ones through a
library. `response` reads responses within limits, `event_stream` the events of a streamed one, and `errors`
says for each failure whether the server may have received the request. `guard` checks URLs that others supplied,
`addresses` the IP addresses of their hosts.
"""
