"""The execution of accepted generations by this process or another.

`leases` makes sure that exactly one worker runs a generation and that it is run again after a crash. `running` is one
job in this process. `cluster` shares generations among processes over Postgres. `callbacks` lets providers report that
a job has ended, and `endings` lets jobs wait for the end of others.
"""
