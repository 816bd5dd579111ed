"""The directory of a live partition: a snapshot, the journal since, and which of them count."""
