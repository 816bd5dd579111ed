"""The soft-404 model is made here: pages of both kinds, the fit, and what it is worth."""
