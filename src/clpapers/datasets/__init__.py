"""Data sets: fetched from the first source that serves, checked, stored in canonical order; or stand-ins."""
