"""Sound files: their formats, how they are recognised, and how they are decoded and encoded in child processes.

`formats` lists the formats that callers can ask for, `sniff` recognises a file by its first bytes, and `wave` reads and
writes the headers of WAV. `decode` and `encode` wrap the codecs; `convert` is the task of a child process that changes
the format, the rate and the speed of a sound while it arrives.
"""
