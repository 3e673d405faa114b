"""Declarations: the methods, metrics and renderers that there are, read without importing them."""
