"""Archive files read, record by record, whatever state they are in."""
