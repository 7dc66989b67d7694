"""Bring an output into the form in which it is stored: cleaned or converted, and with its Content Credentials."""

import structlog

from penstock.imaging.marks import find_marks
from penstock.imaging.sniff import FileInfo, is_unconverted
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.buffers import Buffer
from penstock.media.provider_files import UnusableFile
from penstock.provenance.sealer import Origin, SealedImage, Sealer
from penstock.provenance.xmp import packet, with_xmp
from penstock.schema import ContentCredentials, Request
from penstock.telemetry.tracing import span
from penstock.values import OrgId

log = structlog.get_logger()


class Finisher:
    """Converts and seals images in child processes."""

    def __init__(self, pool: WorkerPool, sealer: Sealer) -> None:
        self._pool = pool
        self.sealer = sealer

    async def finish_svg(
        self, data: Buffer, request: Request, origin: Origin, *, for_org: OrgId
    ) -> tuple[SealedImage, ContentCredentials | None]:
        """Return a vector image without scripts and references; never the original, whatever the reason.

        Raises UnusableFile, and NotSealed as `finish_image` does.
        """
        try:
            image, credentials = await self.sealer.seal_svg(data, request, origin, for_org=for_org)
            if image is not None:
                return image, credentials
            with span("convert"):
                made = await self._pool.run("image.clean_svg", for_org=for_org, data=data)
        except WorkFailed as error:
            raise UnusableFile(error.message) from error
        return SealedImage(**made), credentials

    async def finish_image(
        self, data: Buffer, found: FileInfo, request: Request, origin: Origin, *, for_org: OrgId
    ) -> tuple[SealedImage, ContentCredentials | None]:
        """Return an image in the requested format, with what became of its credentials; the same bytes if nothing was
        to be done.

        Raises UnusableFile, and NotSealed if the caller requires credentials that it cannot have.
        """
        output_format = request.values.get("output_format", "png")
        compression = request.values.get("output_compression", 100)
        conversion = None if is_unconverted(found, output_format, compression) else (output_format, compression)
        unchanged = SealedImage(data, found.content_type, found.width, found.height)
        try:
            image, credentials = await self.sealer.seal_image(
                data, found.content_type, conversion, request, origin, for_org=for_org
            )
            if image is not None:
                return (image if image.width else unchanged.with_data(image.data)), credentials
            if conversion is None:
                return unchanged, credentials
            with span("convert"):
                made = await self._pool.run(
                    "image.convert",
                    for_org=for_org,
                    data=data,
                    output_format=output_format,
                    output_compression=compression,
                )
        except WorkFailed as error:
            if error.kind == "refused" or not found.width:
                raise UnusableFile(error.message) from error
            # The limits of this gateway, not the provider, are the reason: what was paid for is delivered as it is.
            log.warning("output not converted", output_format=output_format, reason=error.message)
            status = "kept" if find_marks(data).c2pa_bytes else "none"
            return unchanged, self.sealer.check(request, status)
        return _with_mark_of(data, SealedImage(**made), request), credentials


def _with_mark_of(original: Buffer, image: SealedImage, request: Request) -> SealedImage:
    """A converted image with what its provider said in the XMP about its source, unless the caller wants nothing."""
    source_type = find_marks(original).digital_source_type
    if source_type is None or request.provenance is None or request.provenance.mode == "off":
        return image
    return image.with_data(with_xmp(bytes(image.data), image.content_type, packet({"source_type": source_type})))
