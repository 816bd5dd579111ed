"""WACZ: archive files, their index and their pages in one ZIP file."""
