"""The sidecar: what the bytes of archived payloads show them to be, kept in WARC metadata records."""
