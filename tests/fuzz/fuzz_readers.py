"""Fuzzes a reader of what strangers send: with atheris where it is installed, else with hypothesis.

    python tests/fuzz/fuzz_readers.py NAME|all [-max_total_time=60]

NAME is one of those in `TARGETS`: http, parquet, captures, "capture summary", duckdb and so on.

An input that breaks a promise is written to `tests/fuzz/corpus/NAME`, where the tests find it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

try:
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError:
    atheris = None

if atheris is None:
    from fuzz.targets import CORPUS, TARGETS, corpus
else:
    with atheris.instrument_imports(include=["amicrawl"]):
        from fuzz.targets import CORPUS, TARGETS, corpus


def kept(name: str, octets: bytes) -> None:
    """Keep the input *octets*, which has broken the target *name*."""
    path = CORPUS / name / hashlib.sha256(octets).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)
    print(f"{name}: broken by {path}", file=sys.stderr)


def with_atheris(name: str, options: list[str]) -> None:
    """Fuzz as long as *options* say, steered by the code that is reached."""
    seeds = ROOT / ".fuzz" / name
    seeds.mkdir(parents=True, exist_ok=True)
    for number, octets in enumerate(corpus(name)):
        (seeds / f"begin-{number}").write_bytes(octets)

    def tried(octets: bytes) -> None:
        try:
            TARGETS[name].run(octets)
        except Exception:
            kept(name, octets)
            raise

    atheris.Setup(
        [sys.argv[0], "-rss_limit_mb=1024", f"-artifact_prefix={seeds}-", *options, str(seeds)], tried
    )
    atheris.Fuzz()


def with_hypothesis(name: str, seconds: float) -> None:
    """Fuzz for *seconds*; of what breaks the target, the smallest that is found is kept."""
    from fuzz.mutated import mutated  # noqa: PLC0415
    from hypothesis import HealthCheck, given, settings  # noqa: PLC0415

    until, count, broken = time.monotonic() + seconds, 0, b""

    @settings(max_examples=2000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(mutated(corpus(name)))
    def run(octets: bytes) -> None:
        nonlocal count, broken
        if broken or time.monotonic() < until:
            count += 1
            try:
                TARGETS[name].run(octets)
            except Exception:
                broken = octets
                raise

    try:
        while time.monotonic() < until:
            run()
    except Exception:
        kept(name, broken)
        raise
    print(f"{name}: {count} inputs, nothing broken", file=sys.stderr)


def main() -> int:
    """Fuzz what the command line names; return the exit code."""
    name, *options = sys.argv[1:] or ["all"]
    if name == "all":
        # Each in a process of its own: atheris ends the one that it runs in.
        here = [sys.executable, __file__]
        return max(subprocess.call([*here, each, *options]) for each in TARGETS)
    if atheris is not None:
        with_atheris(name, options)
        return 0
    seconds = [option.partition("=")[2] for option in options if option.startswith("-max_total_time=")]
    with_hypothesis(name, float(seconds[0]) if seconds else 60.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
