"""The files that callers send and providers make.

`transfer` fetches, checks, converts and stores them, `storage` holds the bytes in a folder or an object store, and
`files` keeps the rows: signed URLs, expiry and deletion.
"""
