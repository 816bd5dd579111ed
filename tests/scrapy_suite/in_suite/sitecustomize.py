"""Loaded by every Python process of the suite that has this folder in its path."""

import suite_addon

suite_addon.install()
