"""The database: one interface, with SQLite or Postgres behind it.

`base` is the interface, `opening` opens the database of the settings, `sqlite` and `postgres` implement it. Queries are
named SQL in `queries/*.sql`, read by `queries`; the schema is in `migrations/*.sql`, applied by `migrate`.
"""
