"""Files to start from, as `clpapers new` writes them."""
