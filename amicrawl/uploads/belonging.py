"""Whether a bucket is that of a directory: two crawls never share one, and a crawl has one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from amicrawl.errors import OutputError, UsageError
from amicrawl.listing import (
    MANIFEST_NAME,
    SIZE_LIMIT,
    SUFFIX,
    NotAManifestError,
    UploadManifest,
    decoded,
    listed_files,
    read_manifest,
)
from amicrawl.uploads.bucket import DirectoryBucket, small_object

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.uploads.bucket import Bucket


def manifest_for(directory: Path, bucket: Bucket) -> UploadManifest:
    """Return the manifest of *directory*, completed by the one in *bucket*.

    Raises UsageError where the bucket holds the files of another crawl or is the directory itself, or
    the directory was uploaded to another bucket; OutputError where the bucket cannot be read,
    DamagedFileError where a list of files in the directory cannot.
    """
    if isinstance(bucket, DirectoryBucket) and bucket.is_at(directory):
        # Each file would be found there, and removed here as one that has a copy.
        raise UsageError(
            f"{bucket.url} is {directory} itself, where nothing would be a copy. Give another place."
        )
    here, there = read_manifest(directory), _manifest_in(bucket)
    if here.bucket and _place(here.bucket) != _place(bucket.url):
        raise UsageError(
            f"{directory} was uploaded to {here.bucket}, and {bucket.url} is another bucket. Give the "
            f"first, or move {MANIFEST_NAME} away to upload what is still here to the second."
        )
    known = {file.name: file.sha256 for file in listed_files(directory)}
    known |= {name: each.file.sha256 for name, each in here.files.items()}
    strange = [
        name
        for name, each in there.files.items()
        if name.endswith(SUFFIX) and known.get(name) != each.file.sha256
    ]
    if strange:
        raise UsageError(
            f"{bucket.url} holds the files of another crawl ({strange[0]}, for one). Give each "
            "directory a path of its own."
        )
    files = {**there.files, **here.files}
    return UploadManifest(bucket.url, files, here.begun)


def _manifest_in(bucket: Bucket) -> UploadManifest:
    try:
        content = small_object(bucket, MANIFEST_NAME, largest=SIZE_LIMIT)
        return UploadManifest() if content is None else decoded(content)
    except OSError as error:
        raise OutputError(
            f"{bucket.url} cannot be read: {error}. Check the credentials and the network."
        ) from error
    except NotAManifestError as error:
        raise UsageError(
            f"{bucket.url} holds an {MANIFEST_NAME} of something else: {error}. Choose another path."
        ) from error


def _place(url: str) -> tuple[str, ...]:
    """Return what of *url* says where objects are, and not how they are reached."""
    parts = urlsplit(url)
    endpoint = parse_qs(parts.query).get("endpoint_override", [""])[0]
    return parts.scheme, parts.netloc.rpartition("@")[2], parts.path.strip("/"), endpoint
