"""Frontier files: one partition as columns, pages and checksums, byte for byte as the format says."""
