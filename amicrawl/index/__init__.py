"""The index: archive files read, and what is made of them so that they can be looked up and counted."""
