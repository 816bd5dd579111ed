"""The figures that were published of the National Laboratories of the End of Term crawl of 2012.

Source: Alam and Phillips, "Leveraging Parquet Files for Efficient Web Archive Collection
Analytics", 2024.
What a summary does not tell (single hosts beyond the first ten, days) is made up to fit.
"""

from __future__ import annotations

from amicrawl.archive.report.counts import CaptureTally, Counts

CAPTURES = 3_924_946
URLS = 3_410_554
HOSTS = 2_004

STATUSES = ("200", "301", "404", "500", "-")
MIME_STATUS = {
    "text/html": (1_868_220, 124_206, 199_751, 9_226, 0),
    "image/jpeg": (1_061_600, 404, 1, 0, 0),
    "text/css": (24_916, 2, 0, 1, 0),
    "application/javascript": (7_754, 1, 0, 0, 0),
    "application/json": (474, 0, 6, 0, 0),
    "text/xml": (41_122, 45, 78, 153, 0),
    "text/plain": (137_084, 30_589, 1_776, 87, 0),
    "application/pdf": (209_684, 0, 0, 2, 0),
    "audio/mpeg": (989, 0, 0, 0, 0),
    "video/mp4": (5_023, 0, 0, 0, 0),
    "warc/revisit": (0, 0, 0, 0, 43_758),
    "application/octet-stream": (145_862, 5_790, 6_339, 3, 0),
}

PATH_QUERY = (
    (2_001, 4_255, 3_298, 222, 1_072, 17),
    (57_439, 20_344, 12_431, 25_655, 11_628, 36_251),
    (249_205, 164_127, 120_002, 193_958, 52_590, 82_749),
    (478_970, 125_016, 46_142, 36_594, 29_150, 24_499),
    (630_813, 55_958, 33_164, 11_620, 14_203, 13_801),
    (1_258_435, 51_629, 30_233, 11_495, 14_140, 21_840),
)

MONTHS = {
    "201209": 433_574,
    "201210": 239_888,
    "201211": 1_106,
    "201212": 1_985,
    "201301": 1_781,
    "201302": 1_555_616,
    "201303": 1_690_996,
}

TOP_HOSTS = {
    "gov,anl,aps,xray,usaxs": 178_298,
    "gov,nrel": 81_544,
    "gov,sandia": 80_985,
    "gov,fnal": 79_431,
    "gov,ornl": 71_190,
    "gov,inl,inlportal": 70_136,
    "gov,bnl": 62_693,
    "gov,lanl": 50_292,
    "org,jlab": 47_624,
    "gov,llnl": 46_094,
}

SIZE = 1_100_000_000_000


def national_labs(rules: str) -> Counts:
    """Return the counts of that collection."""
    counts = Counts(rules=rules, captures=CAPTURES, urls=URLS, hosts=HOSTS, bytes=SIZE)
    counts.first, counts.last = "20120913084501", "20130331235959"
    counts.first_key, counts.last_key = b"edu,stanford,slac)/", b"org,jlab,www2)/"
    for mime, row in MIME_STATUS.items():
        for status, captures in zip(STATUSES, row, strict=True):
            if captures:
                counts.by_mime_status.add((mime, status), captures, 0)
    for path, depths in enumerate(PATH_QUERY):
        for query, captures in enumerate(depths):
            counts.by_path_query.add((path, query), captures, 0)
    counts.by_month = CaptureTally(
        {month: (captures, captures * 280_000) for month, captures in MONTHS.items()}
    )
    counts.by_host = _hosts()
    return counts


def _hosts() -> CaptureTally[str]:
    hosts: CaptureTally[str] = CaptureTally()
    for host, captures in TOP_HOSTS.items():
        hosts.add(host, captures, captures * 280_000)
    others = HOSTS - len(TOP_HOSTS)
    rest = CAPTURES - sum(TOP_HOSTS.values())
    for number in range(others):
        captures = rest // others + (number < rest % others)
        hosts.add(f"gov,lbl,h{number}", captures, captures * 280_000)
    return hosts
