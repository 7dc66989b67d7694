"""Long bodies of requests and responses: JSON and base64 of many megabytes, without long steps and without copies.

Python runs no other thread during one step, such as decoding a value, so all work here is done in pieces. Start with
`json_decoding` and `json_encoding`. `long_texts` takes the long texts out of JSON; `json_outline` changes JSON without
decoding them. `base64_pieces` decodes and encodes files in base64, `long_body` is what is sent piece by piece, and
`buffers` collects what arrives.
"""
