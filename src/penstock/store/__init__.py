"""The database: one interface, with SQLite or Postgres behind it.

Start with `base`, the interface. `opening` opens the database of the settings; `sqlite` and `postgres` implement the
interface, and the modules that begin with their names belong to them. Queries are named SQL in `queries/*.sql`, read by
`queries`; the schema is in `migrations/*.sql`, applied by `migrate`.

Of what callers of the interface share, `groups` writes for several tasks in one transaction and `lock_order` sorts its
changes, `paging` and `related` read lists, `waiting` tries again while the database is away, `renewals` judges expired
leases by the time that `database_time` takes from the database, `probe` tries a write, and `shares` divides
connections. `queue` installs the tables of the job queue.
"""
