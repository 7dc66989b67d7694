# syntax=docker/dockerfile:1
# Builds a small image that runs the gateway as an unprivileged user on a read-only file system:
#
#   docker build --tag penstock:0.1.0 .
#   docker run --publish 127.0.0.1:8080:8080 --volume penstock:/data --read-only --tmpfs /tmp penstock:0.1.0

FROM python:3.13-slim AS build

WORKDIR /build
RUN python -m venv /opt/penstock
ENV PATH=/opt/penstock/bin:$PATH

# The locked dependencies first: this layer is rebuilt only when they change.
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements.lock

COPY pyproject.toml setup.py README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md Dockerfile compose.yaml ./
COPY docs ./docs
COPY deploy ./deploy
COPY src ./src
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && python -m compileall -q /opt/penstock/lib


FROM python:3.13-slim

COPY --from=build /opt/penstock /opt/penstock
RUN useradd --uid 10001 --no-create-home --no-log-init --home-dir /data --shell /usr/sbin/nologin penstock \
    && install --directory --owner penstock --group penstock --mode 0700 /data

# The container's port is reachable only where --publish says so: publish it to this machine or to a proxy with TLS.
# `container` says where it runs, as systemd and podman define it.
ENV PATH=/opt/penstock/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    container=oci \
    PENSTOCK_DATA=/data \
    PENSTOCK_HOST=0.0.0.0 \
    PENSTOCK_ALLOW_PLAIN_HTTP=true \
    PENSTOCK_PUBLIC_URL=http://127.0.0.1:8080
USER 10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# Images in OCI's format, podman's default, do not keep this: build them with `--format docker`, or state it in compose.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT ["penstock"]
CMD ["serve"]
