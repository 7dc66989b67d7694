"""Where everything is kept: one interface, SQLite or Postgres behind it."""
