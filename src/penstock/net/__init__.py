"""Outgoing HTTP.

`client` sends requests: most through a library, those of chats and webhooks with `http1`, whose `connection`s belong
to the event loop. `response` reads responses within limits, `event_stream` the events of a streamed one, and `errors`
says for each failure whether the server may have received the request. `guard` checks URLs that others supplied,
`addresses` the IP addresses of their hosts.
"""
