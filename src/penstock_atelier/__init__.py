"""Atelier, the built-in provider: it needs no key and no network.

It comes through the same door as a provider in a package of your own, an entry point, and uses only what
docs/plugins.md promises to all of them.

`table` describes its models like any other provider's, `server` answers the requests that the table makes, and
`renderers` draw the images and videos.
"""
