"""Run every command of the container recipe and of the Kubernetes manifests as it is written there.

The build stage of the recipe is run into a folder, so that there is just what the image would have; then
each container of each manifest is started with its command, arguments and variables, its probes are run
until they succeed, and its `preStop` hook ends it. Absolute paths of an image are folders here, and the
bucket of the settings is a folder; nothing else is changed. `redis-server` has to be installed.

Where there is `kubectl`, what it makes of the kustomization is held against the schemas of Kubernetes;
where Docker or Podman responds, the image itself is built, and started with the rights of a pod.
"""

# ruff: noqa: S603, S607  # the commands are those of files of this repository
from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import kubernetes_validate
import yaml

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
MANIFESTS = EXAMPLES / "kubernetes"
PATIENCE = 90.0
GRACE = 20.0
"""Seconds that what is still running has to end once it is told to."""
FOLDERS = ("/opt/amicrawl", "/wheels", "/data", "/crawls", "/run/redis", "/etc/redis")


def instructions(recipe: Path) -> list[tuple[str, str]]:
    """Return the instructions of a recipe, with what follows each."""
    text = recipe.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def stages(recipe: Path) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of a recipe."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(recipe):
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def placed(text: str, root: Path) -> str:
    """Return *text* with the absolute paths of an image below *root*."""
    for folder in FOLDERS:
        text = re.sub(rf"(?<![\w.-]){folder}(?![\w-])", f"{root}{folder}", text)
    return text


class Image:
    """What the recipe builds, in a folder; what was started of it is stopped at the end of its block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._build, self._final = stages(EXAMPLES / "container" / "Containerfile")
        self.children: list[subprocess.Popen[bytes]] = []
        """What was started, and may be running."""
        self.variables = {"HOME": str(root), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE"):
            if name in os.environ:
                self.variables[name] = os.environ[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        running = [child for child in reversed(self.children) if child.poll() is None]
        for child in running:
            child.terminate()
        for child in running:
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def build(self) -> None:
        """Run the build stage; raises where a command of it fails."""
        source, base = self.root / "source", self.root / "base"
        source.mkdir()
        (self.root / "opt").mkdir()
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
        path = f"{base}/bin:{self.variables['PATH']}"
        for word, rest in self._build:
            if word == "COPY":
                *names, to = rest.split()
                for name in names:
                    whole, target = PROJECT / name, source / (Path(name).name if to == "./" else to)
                    copy = shutil.copytree if whole.is_dir() else shutil.copy
                    copy(whole, target)
            elif word == "RUN":
                line = placed(rest, self.root)
                environment = {**self.variables, "PATH": path, "UV_SYSTEM_CERTS": "true"}
                subprocess.run(["sh", "-ec", line], cwd=source, env=environment, check=True)
        shutil.rmtree(base)
        for word, rest in self._final:
            if word == "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", placed(rest, self.root)):
                    self.variables[name] = value.replace("$PATH", self.variables["PATH"])
        for folder in FOLDERS:
            Path(f"{self.root}{folder}").mkdir(parents=True, exist_ok=True)

    def last(self, word: str) -> Any:
        """Return what an instruction of the last stage says: a word, or a list of words."""
        (rest,) = [rest for each, rest in self._final if each == word]
        return yaml.safe_load(rest)

    def start(self, words: list[str], variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        """Start a command as the image does."""
        with log.open("wb") as output:
            child = subprocess.Popen(
                [placed(word, self.root) for word in words],
                cwd=f"{self.root}/data",
                env={**self.variables, **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.children.append(child)
        return child

    def run(self, words: list[str], variables: dict[str, str]) -> None:
        """Run a command as the image does; raises where it fails."""
        log = self.root / "run.log"
        code = self.start(words, variables, log).wait(300)
        print(f"  {' '.join(words)[:100]}: exit code {code}", flush=True)
        if code:
            raise SystemExit(f"{words} has failed:\n{log.read_text()[-3000:]}")


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Pods:
    """The containers of the manifests, one at a time."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.objects = [
            each
            for path in sorted(MANIFESTS.glob("*.yaml"))
            for each in yaml.safe_load_all(path.read_text())
        ]
        self.port = free_port()
        (image.root / "bucket").mkdir()
        example = (MANIFESTS / "secrets.env.example").read_text()
        self.secrets = dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", example))
        self.secrets["REDIS_URL"] = self.secrets["REDIS_URL"].replace(
            "redis:6379", f"127.0.0.1:{self.port}"
        )
        self.settings = {**self._map("amicrawl-settings"), "BUCKET": (image.root / "bucket").as_uri()}

    def _map(self, name: str) -> dict[str, str]:
        (found,) = [
            each["data"]
            for each in self.objects
            if each["kind"] == "ConfigMap" and each["metadata"]["name"] == name
        ]
        return dict(found)

    def pod(self, name: str) -> dict[str, Any]:
        """Return the pod of the set or deployment *name*."""
        (found,) = [
            each["spec"]["template"]["spec"]
            for each in self.objects
            if each["kind"] in {"StatefulSet", "Deployment"} and each["metadata"]["name"] == name
        ]
        return dict(found)

    def names(self) -> list[str]:
        """Return the names of all sets and deployments."""
        kinds = {"StatefulSet", "Deployment"}
        return [each["metadata"]["name"] for each in self.objects if each["kind"] in kinds]

    def variables(self, container: dict[str, Any]) -> dict[str, str]:
        """Return the variables that a container is given."""
        given = dict(self.settings) if container.get("envFrom") else {}
        for each in container.get("env", []):
            source = each.get("valueFrom", {})
            if "secretKeyRef" in source:
                given[each["name"]] = self.secrets[source["secretKeyRef"]["key"]]
            else:
                given[each["name"]] = "pod-0" if source else each["value"]
        return given

    def words(self, container: dict[str, Any], variables: dict[str, str]) -> list[str]:
        """Return the whole command line of a container, its references replaced."""
        words = container.get("command") or self.image.last("ENTRYPOINT")
        words = [*words, *container.get("args", [])]
        return [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word) for word in words]

    def configure_redis(self) -> None:
        """Write the configuration that its pod mounts; its port is a free one here."""
        text = placed(self._map("redis")["redis.conf"], self.image.root)
        path = Path(f"{self.image.root}/etc/redis/redis.conf")
        path.write_text(f"{text}\nport {self.port}\nbind 127.0.0.1\n")

    def started(self, name: str) -> tuple[subprocess.Popen[bytes], dict[str, Any], dict[str, str]]:
        """Start the pod *name*, its init containers first, and wait until all its probes succeed."""
        pod = self.pod(name)
        print(f"{name}:", flush=True)
        for container in pod.get("initContainers", []):
            variables = self.variables(container)
            self.image.run(self.words(container, variables), variables)
        (container,) = pod["containers"]
        variables, log = self.variables(container), self.image.root / f"{name}.log"
        child = self.image.start(self.words(container, variables), variables, log)
        ports = {each["name"]: each["containerPort"] for each in container.get("ports", [])}
        if name == "redis":
            ports["redis"] = self.port
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if kind in container:
                self._wait_for(container[kind], ports, variables, child, log)
                print(f"  {kind} succeeds", flush=True)
        return child, container, variables

    def _wait_for(
        self,
        probe: dict[str, Any],
        ports: dict[str, int],
        variables: dict[str, str],
        child: subprocess.Popen[bytes],
        log: Path,
    ) -> None:
        until = time.monotonic() + PATIENCE
        while not self._succeeds(probe, ports, variables):
            if child.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{probe} does not succeed:\n{log.read_text()[-3000:]}")
            time.sleep(0.3)

    def _succeeds(self, probe: dict[str, Any], ports: dict[str, int], variables: dict[str, str]) -> bool:
        try:
            if "exec" in probe:
                words = [placed(word, self.image.root) for word in probe["exec"]["command"]]
                # Its pod has the port of every Redis.
                words = [word.replace("redis-cli", f"redis-cli -p {self.port}") for word in words]
                environment = {**self.image.variables, **variables}
                return subprocess.run(words, env=environment, check=False).returncode == 0
            if "httpGet" in probe:
                port = ports[probe["httpGet"]["port"]]
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}{probe['httpGet']['path']}"
                ) as answer:
                    return bool(answer.status == 200)
            socket.create_connection(("127.0.0.1", ports[probe["tcpSocket"]["port"]]), 1).close()
        except OSError:
            return False
        return True

    def stop(self, child: subprocess.Popen[bytes], container: dict[str, Any]) -> None:
        """End a container as Kubernetes does: its hook, then the signal that its image names."""
        hook = container.get("lifecycle", {}).get("preStop")
        if hook is not None:
            # Its pod has no other process 1.
            words = [
                re.sub(r"(kill -\w+) 1\b", rf"\1 {child.pid}", word) for word in hook["exec"]["command"]
            ]
            hooked = subprocess.Popen(words)
            self.image.children.append(hooked)
            child.wait(PATIENCE)
            hooked.wait(PATIENCE)
        child.send_signal(signal.Signals[self.image.last("STOPSIGNAL")])
        code = child.wait(PATIENCE)
        print(f"  stopped, exit code {code}", flush=True)
        if code not in {0, 6, 130, -signal.SIGINT}:
            raise SystemExit(f"it has ended with {code}")


def check_kustomization() -> None:
    """Hold what `kubectl` would send to a cluster against the schemas of its kinds."""
    if shutil.which("kubectl") is None:
        print("kubectl is not there: the kustomization was not built.", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kubernetes"
        shutil.copytree(MANIFESTS, copy)
        shutil.copy(copy / "secrets.env.example", copy / "secrets.env")
        words = ["kubectl", "kustomize", str(copy)]
        made = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    objects = list(yaml.safe_load_all(made))
    for each in objects:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    print(f"kubectl makes {len(objects)} objects, and each follows the schema of its kind.", flush=True)


def check_image() -> None:
    """Build the image by a builder that responds, and start it with the rights of a pod."""
    for builder in ("docker", "podman"):
        if (
            shutil.which(builder)
            and subprocess.run([builder, "info"], check=False, capture_output=True).returncode == 0
        ):
            break
    else:
        print("Neither Docker nor Podman responds: the image itself was not built.", flush=True)
        return
    name = "amicrawl-recipe-check"
    recipe = EXAMPLES / "container" / "Containerfile"
    subprocess.run([builder, "build", "-f", recipe, "-t", name, "."], cwd=PROJECT, check=True)
    rights = ["--rm", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    for words in ([], ["pipeline", "--help"], ["dashboard", "--help"]):
        subprocess.run([builder, "run", *rights, name, *words], check=True)
    print(f"{builder} has built the image, and its commands start.", flush=True)


def heed_signals() -> None:
    """Have SIGINT and SIGTERM end this program in order, and what it starts by their usual meaning.

    A shell has its jobs in the background ignore SIGINT, by which containers are stopped here.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def main() -> None:
    """Build what the image has, and run everything in it."""
    heed_signals()
    check_kustomization()
    check_image()
    with tempfile.TemporaryDirectory() as folder, Image(Path(folder)) as image:
        image.build()
        image.run(image.last("ENTRYPOINT") + image.last("CMD"), {})
        run_compose(image)
        pods = Pods(image)
        pods.configure_redis()
        pods.started("redis")
        create = ["amicrawl", "share", "create", pods.settings["SHARE"], "--seeds", "/crawls/seeds.txt"]
        image.run([*create, "--redis", pods.secrets["REDIS_URL"]], {})
        for name in pods.names():
            if name != "redis":
                child, container, _ = pods.started(name)
                pods.stop(child, container)
    print("Every command of the recipe and of the manifests works.")


def run_compose(image: Image) -> None:
    """Run the services of the compose file on a crawl file of one page that does not respond."""
    crawls = Path(f"{image.root}/crawls")
    (crawls / "seeds.txt").write_text(f"http://127.0.0.1:{free_port()}/\n")
    shutil.copy(EXAMPLES / "crawls" / "list.toml", crawls / "gov.toml")
    shutil.copy(EXAMPLES / "crawls" / "common.toml", crawls)
    for name, service in yaml.safe_load((EXAMPLES / "container" / "compose.yaml").read_text())[
        "services"
    ].items():
        print(f"compose, {name}:", flush=True)
        image.run([*image.last("ENTRYPOINT"), "check", "/crawls/gov.toml"], {})
        log = image.root / "compose.log"
        code = image.start([*image.last("ENTRYPOINT"), *service["command"]], {}, log).wait(300)
        print(f"  {' '.join(service['command'])}: exit code {code}", flush=True)
        # 10: no server has responded.
        if code not in {0, 10}:
            raise SystemExit(f"it has failed:\n{log.read_text()[-3000:]}")


if __name__ == "__main__":
    main()
