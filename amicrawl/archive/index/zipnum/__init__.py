"""ZipNum clusters: an index in gzip members, and the short index of those."""
