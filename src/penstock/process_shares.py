"""Divide what limits the use of a machine among the processes that serve its port together."""

from penstock.settings import Settings
from penstock.settings.loading import with_values

_CONNECTIONS_MIN = 6  # some are kept for reads, and one organization gets half


def share(settings: Settings, cores: int) -> Settings:
    """The settings of one of several processes: what limits the use of this machine or the database is divided.

    Without several processes the settings are returned as they are, with the number of processes filled in.
    """
    count = settings.processes or (cores if settings.database else 1)
    if count == 1:
        return with_values(settings, processes=1)
    return with_values(
        settings,
        processes=count,
        database_connections=max(_CONNECTIONS_MIN, settings.database_connections // count),
        concurrent_jobs=-(-settings.concurrent_jobs // count),
        receiving_bytes=max(settings.json_bytes, settings.form_bytes, settings.receiving_bytes // count),
        sound_workers=-(-settings.sound_workers // count),
        image_workers=-(-(settings.image_workers or cores) // count),
    )
