"""Atelier, the built-in provider: it needs no key and no network.

`table` describes its models like any other provider's, `server` answers the requests that the table makes, and
`renderers` draw the images and videos.
"""
