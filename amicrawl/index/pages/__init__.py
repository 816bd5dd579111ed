"""Pages among the records: what they are, say and point to. Pure."""
