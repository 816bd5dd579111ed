"""WAT and WET: archive files made from others."""
