"""The files that callers send and providers make.

`transfer` fetches, checks and converts them, `storage` keeps the bytes in a folder or an object store, and `files`
keeps the rows: signed URLs, expiry and deletion.
"""
