"""The endpoints of the native API, and the paths around it: one file per resource.

Those that make images, videos and chats are in the packages `generations` and `chat`; `generations` here declares what
is common to their calls. `routes`, one folder up, lists all of them.
"""
