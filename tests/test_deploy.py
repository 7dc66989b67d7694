"""The files for containers, Kubernetes, systemd and proxies name settings, paths and limits that exist."""

import json
import re
from pathlib import Path
from typing import Any

import typer
import yaml

from penstock import __version__
from penstock.api.routes import ROUTES
from penstock.cli import app
from penstock.settings import Settings, description
from penstock.settings.loading import load
from tests.deploy_files import ROOT, compose_services, image_environment

KUBERNETES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
FILES = [ROOT / "Dockerfile", ROOT / "compose.yaml", *sorted(path for path in (ROOT / "deploy").rglob("*.*"))]
OTHER_VARIABLES = {"PENSTOCK_KEY", "PENSTOCK_URL", "PENSTOCK_CONFIG"}


def kubernetes_objects() -> list[dict[str, Any]]:
    return [found for path in KUBERNETES for found in yaml.safe_load_all(path.read_text())]


def pods() -> dict[str, dict[str, Any]]:
    deployments = [found for found in kubernetes_objects() if found["kind"] == "Deployment"]
    return {found["metadata"]["name"]: found["spec"]["template"]["spec"] for found in deployments}


def test_every_variable_is_a_setting() -> None:
    known = {variable for _, variable, _, _ in description.rows()} | OTHER_VARIABLES
    named = {(path.name, name) for path in FILES for name in re.findall(r"PENSTOCK_[A-Z_]+[A-Z]", path.read_text())}
    assert len(named) > 15
    assert sorted((path, name) for path, name in named if name not in known) == []


def service_links() -> dict[str, str]:
    """The variables that Kubernetes sets for each service, unless a pod declines them."""
    services = [found["metadata"]["name"] for found in kubernetes_objects() if found["kind"] == "Service"]
    return {f"{name.upper().replace('-', '_')}_PORT": "tcp://10.0.0.1:80" for name in services}


def test_the_values_of_every_container_are_accepted(tmp_path: Path) -> None:
    """As they reach the process: what the image sets, then what Compose or Kubernetes sets."""
    environments = {name: service["environment"] for name, service in compose_services().items() if "build" in service}
    (config,) = [found["data"] for found in kubernetes_objects() if found["kind"] == "ConfigMap"]
    for name, pod in pods().items():
        own = {variable["name"]: variable["value"] for variable in pod["containers"][0].get("env", [])}
        links = service_links() if pod.get("enableServiceLinks", True) else {}
        environments[f"{name} of Kubernetes"] = {**links, **config, **own}
    assert len(environments) == 5
    for name, environment in environments.items():
        given = {variable: re.sub(r"\$\{.*?\}", "0" * 40, value or "") for variable, value in environment.items()}
        found = load({"data": tmp_path}, {**image_environment(), **given})
        assert found.media.startswith("s3://"), name
        assert found.media_options["region"], name
        assert found.worker is ("worker" in name), name
        assert found.host == "0.0.0.0", name  # noqa: S104
        assert found.behind_tls or found.allow_plain_http, name
        assert found.trusted_proxies, "callers behind a proxy have addresses of their own"
        assert found.media_urls == "gateway", "callers reach no object store of the network inside"


def test_the_chart_has_this_version_and_the_settings_of_the_manifests() -> None:
    """`make test-deploy` compares the rest, with helm."""
    helm = ROOT / "deploy" / "helm"
    chart, values = (yaml.safe_load((helm / name).read_text()) for name in ("Chart.yaml", "values.yaml"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    (config,) = [found["data"] for found in kubernetes_objects() if found["kind"] == "ConfigMap"]
    assert values["settings"] == config
    assert sorted(json.loads((helm / "values.schema.json").read_text())["properties"]) == sorted([*values, "global"])


def test_every_image_has_the_tag_of_this_version() -> None:
    documents = [ROOT / "docs" / "deploy.md", *FILES]
    tags = {tag for path in documents for tag in re.findall(r"(?<![\w/.])penstock:([\w.]+)", path.read_text())}
    assert tags == {__version__}
    for path in documents:
        untagged = re.findall(r"(?:--tag|--tmpfs /tmp|image:) penstock(?!:)\b", path.read_text())
        assert not untagged, path


def test_compose_checks_health_as_the_image_does() -> None:
    """An image in OCI's format has no health check of its own."""
    (options, command) = re.findall(
        r"^HEALTHCHECK (.*?) \\\n    CMD (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )[0]
    given = dict(re.findall(r"--([\w-]+)=(\w+)", options))
    checks = [service["healthcheck"] for service in compose_services().values() if "build" in service]
    assert len(checks) == 3
    for check in checks:
        assert check["test"] == ["CMD", *json.loads(command)]
        assert {name.replace("_", "-"): value for name, value in check.items() if name != "test"} == given


def test_every_setting_in_a_comment_exists() -> None:
    """Lines such as `#   behind_tls = true`."""
    known = {name for name, *_ in description.rows()}
    named = {name for path in FILES for name in re.findall(r"^#   ([a-z_]+) = ", path.read_text(), re.MULTILINE)}
    assert named, "nginx.conf names some"
    assert named <= known


def test_every_probe_is_a_path_of_the_gateway() -> None:
    paths = {route.path for route in ROUTES}
    probes = {path for file in FILES for path in re.findall(r"/(?:readyz|healthz|livez)\b", file.read_text())}
    assert probes == {"/readyz", "/healthz"}
    assert probes <= paths


def test_every_command_of_a_container_is_a_command_with_its_options() -> None:
    commands = [service["command"] for service in compose_services().values() if "command" in service]
    commands += [container["args"] for pod in pods().values() for container in pod["containers"]]
    commands.append(re.findall(r'^CMD \["(\w+)"\]$', (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    known = typer.main.get_command(app)
    assert isinstance(known, typer.core.TyperGroup)
    assert len(commands) == 4
    for name, *options in commands:
        known.commands[name].make_context(name, list(options))  # raises an error for what it does not know


def test_every_port_is_the_one_on_which_processes_listen() -> None:
    proxies = "".join(path.read_text() for path in (ROOT / "deploy" / "proxies").iterdir())
    found = {
        "EXPOSE": re.findall(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE),
        "HEALTHCHECK": re.findall(r"127\.0\.0\.1:(\d+)/readyz", (ROOT / "Dockerfile").read_text()),
        "compose.yaml": re.findall(r'"--port", "(\d+)"', (ROOT / "compose.yaml").read_text()),
        "proxies": re.findall(r"(?:gateway-\d|127\.0\.0\.1):(\d+)", proxies),
        "Kubernetes": [str(port["containerPort"]) for pod in pods().values() for port in pod["containers"][0]["ports"]],
    }
    expected = {str(Settings().port)}
    assert {place: set(ports) for place, ports in found.items()} == dict.fromkeys(found, expected)


def test_every_probe_and_service_names_a_port_of_its_container() -> None:
    for name, pod in pods().items():
        (container,) = pod["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in ports, (name, probe)
    targets = [
        port["targetPort"]
        for found in kubernetes_objects()
        if found["kind"] == "Service"
        for port in found["spec"]["ports"]
    ]
    assert targets == ["http"]


def test_processes_have_time_to_drain() -> None:
    drain = Settings().drain_seconds
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    unit = (ROOT / "deploy" / "systemd" / "penstock.service").read_text()
    graces = [pod["terminationGracePeriodSeconds"] for pod in pods().values()]
    graces += [
        int(compose["services"][name]["stop_grace_period"].removesuffix("s")) for name in ("gateway-1", "worker")
    ]
    graces.append(int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]))
    pauses = [int(pause) for path in KUBERNETES for pause in re.findall(r"sleep: {seconds: (\d+)}", path.read_text())]
    assert len(graces) == 5
    assert min(graces) > drain + max(pauses)


def test_proxies_take_the_largest_body() -> None:
    largest = max(Settings().form_bytes, Settings().json_bytes)
    sizes = [
        int(size)
        for path in (ROOT / "deploy" / "proxies").iterdir()
        for size in re.findall(r"(?:client_max_body_size|max_size) (\d+)[mM]", path.read_text())
    ]
    assert len(sizes) == 3
    assert all(size * 1_000_000 > largest for size in sizes)


def test_containers_run_without_privileges() -> None:
    for name, pod in pods().items():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
    dockerfile = (ROOT / "Dockerfile").read_text()
    (user,) = re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE)
    assert {pod["securityContext"]["runAsUser"] for pod in pods().values()} == {int(user)}


def test_what_the_image_is_built_from_is_sent_to_the_builder() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = {
        source.removeprefix("./")
        for line in re.findall(r"^COPY (?!--)(.*)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    }
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert copied == sent
    assert all((ROOT / source).exists() for source in copied)


def test_budgets_and_services_select_pods_that_exist() -> None:
    labels = [
        found["spec"]["template"]["metadata"]["labels"]
        for found in kubernetes_objects()
        if found["kind"] == "Deployment"
    ]
    selectors = [
        found["spec"]["selector"].get("matchLabels", found["spec"]["selector"])
        for found in kubernetes_objects()
        if "selector" in found.get("spec", {})
    ]
    assert len(selectors) == 5
    assert all(selector in labels for selector in selectors)
