"""Reading and converting image and video files, in limited child processes.

`workers` runs the child processes, `convert` is what runs in them, `sniff` recognises a format by its first bytes,
and `scratch` provides folders for unfinished files.
"""
