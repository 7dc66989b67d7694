"""Content Credentials: say in each output where it came from, and read what other files say.

`policy` decides what happens to an output, and `sealer` does it: `seal` signs and reads files in a child process,
`statement` writes what is signed, and `signing` keeps the private key in this process. `certificates` makes the pair of
an installation that was given none.
"""
