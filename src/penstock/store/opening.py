"""Open the database that the settings name."""

from penstock.package_extras import check_extra
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.store.migrate import package_migrations
from penstock.store.queries import package_queries
from penstock.store.sqlite import open_sqlite


async def open_store(settings: Settings) -> Store:
    """Open Postgres if the settings name a database, else SQLite in the data folder, and migrate it.

    Raises ExtraMissing if Postgres is not installed, StorageMisconfigured if the database cannot be used, and
    StorageUnavailable if it cannot be reached.
    """
    migrations = package_migrations()
    if settings.database:
        check_extra("postgres", "Postgres")
        from penstock.store.postgres import open_postgres  # imported here because its libraries are an extra

        return await open_postgres(
            settings.database, package_queries(), migrations, connections_max=settings.database_connections
        )
    return await open_sqlite(settings.sqlite_file, package_queries(), migrations)
