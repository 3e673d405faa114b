"""Read the files in config/ and plan a build: files → refusals → model → layers → identity → checks → grid → plan."""
