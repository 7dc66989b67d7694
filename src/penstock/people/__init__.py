"""Sign people in to the pages.

Start with `sessions`: a cookie stands for a session, and a session acts through a key.
"""
