"""What other detectors could be had: pages a second of processor time, and how often each is right.

    PYTHONPATH=CANDIDATES python -m benchmarks.analytics_detectors

CANDIDATES is a directory into which the packages were installed; one that is not there is left out. The
pages are those of `analytics_sidecar.py`, declaring nothing. Right is a character set that gives the
text back, a language that is the page's.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.analytics_sidecar import page_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.analytics_sidecar import Made

PAGES = 200


def main() -> None:
    """Measure what is installed, and print it as JSON."""
    made = [page_in(number, declares=False) for number in range(PAGES)]
    report = {
        "charset": _measured(
            _CHARSETS, [(each, each.body) for each in made if each.charset != "ascii"], _reads
        ),
        "charset of short texts": _measured(
            _CHARSETS, [(each, each.short) for each in made if each.charset != "ascii"], _reads
        ),
        "language": _measured(
            _LANGUAGES, [(each, each.body.decode(each.charset)) for each in made], _is_language
        ),
        "type": _measured(_TYPES, [(each, each.body) for each in made], _is_html),
    }
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _measured(
    candidates: dict[str, Callable[[], Callable[[Any], Any]]],
    requested: Sequence[tuple[Made, Any]],
    is_right: Callable[[Made, Any, Any], bool],
) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, load in candidates.items():
        try:
            detect = load()
        except ImportError:
            continue
        detect(requested[0][1])
        began = time.process_time()
        results = [_detected(detect, question) for _, question in requested]
        seconds = time.process_time() - began
        right = sum(
            is_right(each, question, respond)
            for (each, question), respond in zip(requested, results, strict=True)
        )
        found[name] = {
            "pages_per_cpu_s": round(len(requested) / seconds),
            "right": round(right / len(requested), 3),
        }
    return found


def _detected(detect: Callable[[Any], Any], question: Any) -> Any:
    try:
        return detect(question)
    except Exception:  # noqa: BLE001  # some raise where they do not know
        return None


def _reads(each: Made, question: bytes, respond: Any) -> bool:
    try:
        return question.decode(str(respond).lower()) == question.decode(each.charset)
    except (LookupError, UnicodeError):
        return False


def _is_language(each: Made, _: str, respond: Any) -> bool:
    return str(respond).partition("-")[0] == each.language


def _is_html(_each: Made, _: bytes, respond: Any) -> bool:
    return respond in ("text/html", "application/xhtml+xml")


def _chardetng() -> Callable[[bytes], Any]:
    detector = import_module("chardetng_py").EncodingDetector

    def detect(body: bytes) -> Any:
        one = detector()
        one.feed(body, last=True)
        return one.guess(tld=None, allow_utf8=True)

    return detect


def _of(module: str, detect: Callable[[Any, Any], Any]) -> Callable[[], Callable[[Any], Any]]:
    def load() -> Callable[[Any], Any]:
        loaded = import_module(module)
        return lambda question: detect(loaded, question)

    return load


def _libmagic() -> Callable[[bytes], Any]:
    return import_module("magic").Magic(mime=True).from_buffer  # type: ignore[no-any-return]


_CHARSETS = {
    "chardetng-py": _chardetng,
    "resiliparse": _of("resiliparse.parse.encoding", lambda module, body: module.detect_encoding(body)),
    "faust-cchardet": _of("cchardet", lambda module, body: module.detect(body)["encoding"]),
    "chardet": _of("chardet", lambda module, body: module.detect(body)["encoding"]),
    "charset-normalizer": _of(
        "charset_normalizer", lambda module, body: module.detect(body)["encoding"]
    ),
}
_LANGUAGES = {
    "pycld2": _of("pycld2", lambda module, text: module.detect(text, bestEffort=True)[2][0][1]),
    "resiliparse": _of("resiliparse.parse.lang", lambda module, text: module.detect_fast(text)[0]),
    "py3langid": _of("py3langid", lambda module, text: module.classify(text)[0]),
}
_TYPES = {
    "libmagic": _libmagic,
    "puremagic": _of("puremagic", lambda module, body: module.from_string(body, mime=True)),
}

if __name__ == "__main__":
    main()
