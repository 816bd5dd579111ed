"""Index lines and sidecars joined to lines that say both."""
