"""The manifests in examples/kubernetes follow the schemas of Kubernetes and our own command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml
from loopback import PROJECT

from amicrawl.cli.commands import loaded
from amicrawl.config import PREFIX, CrawlConfig

if TYPE_CHECKING:
    from pathlib import Path

MANIFESTS = PROJECT / "examples" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
FILES = [MANIFESTS / name for name in KUSTOMIZATION["resources"]]


def resources() -> list[dict[str, Any]]:
    """Return every object of the manifests."""
    return [each for path in FILES for each in yaml.safe_load_all(path.read_text())]


def containers() -> list[tuple[str, dict[str, Any]]]:
    """Return each container of every pod, init containers included, with its owner's name."""
    found = []
    for each in resources():
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        found += [
            (each["metadata"]["name"], container)
            for container in [*pod.get("initContainers", []), *pod.get("containers", [])]
        ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_object_follows_the_schema_of_its_kind(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    assert documents
    for each in documents:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_every_file_is_part_of_the_kustomization() -> None:
    beside = {path.name for path in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}
    assert {path.name for path in FILES} == beside


def test_secrets_come_from_the_generator_and_name_every_key_that_is_used() -> None:
    (generated,) = KUSTOMIZATION["secretGenerator"]
    assert generated["envs"] == ["secrets.env"]
    example = (MANIFESTS / "secrets.env.example").read_text()
    offered = set(re.findall(r"(?m)^([A-Z_]+)=", example))
    used = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for _, container in containers()
        for variable in container.get("env", [])
        if "secretKeyRef" in variable.get("valueFrom", {})
    }
    assert used == offered
    assert not any(each["kind"] == "Secret" for each in resources())


@pytest.mark.parametrize(
    ("owner", "container"), containers(), ids=lambda part: part if isinstance(part, str) else ""
)
def test_no_container_may_do_more_than_it_needs(owner: str, container: dict[str, Any]) -> None:
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True, owner
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {"requests", "limits"} <= set(container["resources"])


def options_of(words: list[str]) -> set[str]:
    """Return the options of the command that *words* begins with."""
    command: Any = loaded(words[0])
    for word in words[1:]:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
    return {name for parameter in command.params for name in parameter.opts}


def test_our_commands_have_the_options_that_the_pods_give_them() -> None:
    seen = 0
    for _, container in containers():
        words = container.get("args", [])
        if not words:
            continue
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options_of(words)
        seen += len(given)
        for word in words:
            if word.startswith("--set="):
                name = word.removeprefix("--set=").partition("=")[0]
                assert name.removeprefix(PREFIX).lower() in CrawlConfig.model_fields
    assert seen > 8


def test_the_image_has_the_extras_that_the_commands_of_the_pods_need() -> None:
    lines = [" ".join([*c.get("command", []), *c.get("args", [])]) for _, c in containers()]
    recipe = (PROJECT / "examples" / "container" / "Containerfile").read_text()
    assert any(re.search(r"\bdashboard\b", line) for line in lines)
    assert "--extra dashboard" in recipe


@pytest.mark.parametrize("name", ["pipeline", "share-worker"])
def test_a_pod_that_crawls_has_more_time_to_drain_than_a_crawl_takes(name: str) -> None:
    (pods,) = [
        each
        for each in resources()
        if each["kind"] == "StatefulSet" and each["metadata"]["name"] == name
    ]
    pod = pods["spec"]["template"]["spec"]
    drain = CrawlConfig.model_fields["drain_time"].default
    assert pod["terminationGracePeriodSeconds"] > 10 * drain
    (container,) = pod["containers"]
    assert "kill -TERM 1" in " ".join(container["lifecycle"]["preStop"]["exec"]["command"])
