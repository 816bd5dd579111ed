"""Uploads: sealed files to a bucket, and what a bucket is.

    sealed file, Bucket -> Uploads -> there, verified, and listed in uploaded.json

`bucket` has the kinds of bucket that a URL names, and says whose one is; `upload` the order in which a
file counts as there. Every failure of a store is an OSError, or an OutputError with a sentence.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.uploads.bucket import (
        BLOCK,
        Bucket,
        check_bucket_url,
        check_keeps_state,
        keeps_state,
        open_bucket,
        small_object,
        usable,
    )
    from amicrawl.uploads.internet_archive import with_metadata
    from amicrawl.uploads.progress import UploadProgress
    from amicrawl.uploads.upload import ConflictError, NotAsSealedError, StoppedError, Uploads
else:
    __getattr__, __all__ = lazy_exports(__spec__)
