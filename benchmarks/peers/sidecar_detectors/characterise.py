"""The pages of one WARC file through the detectors of warc-metadata-sidecar, called as it calls them.

    characterise.py WARC

Fido on the first and last 128 KiB, libmagic on the whole payload, chardet line by line, CLD2 on what is
decoded as UTF-8. No soft 404s and nothing written: less than the tool itself does. Prints the number of
pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import magic
import pycld2
from chardet.universaldetector import UniversalDetector
from fido import fido
from warcio.archiveiterator import ArchiveIterator

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
WINDOW = 128 * 1024
CONF = Path(fido.CONFIG_DIR)


def main() -> None:
    """Look at every page."""
    formats = fido.Fido(
        quiet=True,
        nocontainer=True,
        format_files=[next(CONF.glob("formats-v*.xml")).name, "format_extensions.xml"],
        containersignature_file=next(CONF.glob("container-signature-*.xml")).name,
    )
    pages = 0
    with Path(sys.argv[1]).open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type != "response":
                continue
            payload = record.content_stream().read()
            formats.match_formats(payload[:WINDOW], payload[-WINDOW:])
            magic.from_buffer(payload, mime=True)
            detector = UniversalDetector()
            for line in payload.splitlines(keepends=True):
                detector.feed(line)
                if detector.done:
                    break
            detector.close()
            text = payload.decode("utf-8", "replace")
            pycld2.detect(CONTROLS.sub("", text), bestEffort=True)
            pages += 1
    sys.stdout.write(f"{pages}\n")


if __name__ == "__main__":
    main()
