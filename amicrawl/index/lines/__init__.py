"""Lines of an index: made of records, sorted, and read from files."""
