"""The wing of archives: what is made of them, so that they can be looked up, counted and read."""
