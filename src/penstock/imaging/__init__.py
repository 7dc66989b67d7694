"""Reading and converting image and video files, in child processes with limits.

`workers` runs the child processes, which organizations share by `fair_shares`; `child` is what runs in each of them,
and `confinement` cuts it off from files and the network. `messages` are what they are told and reply. `convert` does
the work in them for images, `svg` cleans vector images, `video` measures videos, and `previews` shows some of their
frames. `formats` lists the formats, `sniff` recognises a file by its first bytes, and `scratch` provides folders for
unfinished files.
"""
