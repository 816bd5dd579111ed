"""Everything that is made of a collection, in one read of each file."""
