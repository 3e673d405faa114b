"""Data sets: ordered sources, checked bytes, canonical arrays on disk, stand-ins where none can be had."""
