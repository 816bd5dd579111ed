"""Documentation packages of Debian as a site on this machine: the demonstration collection."""
