def pytest_make_parametrize_id(val: object) -> str | None:
    """Name packed parameters alike in every process: gzip puts the time into what it packs."""
    return "gzip" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None
