"""Captures looked up in an index: the questions of a CDX server, and a server of one's own."""
