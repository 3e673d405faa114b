"""What holds for all tests: no test fails for being slow."""

from hypothesis import settings

settings.register_profile("clpapers", deadline=None)
settings.load_profile("clpapers")
