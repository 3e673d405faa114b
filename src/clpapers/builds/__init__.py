"""A build as its user meets it: prepared, shown while it runs, checked before and verified after."""
