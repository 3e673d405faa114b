"""What the files in config/ say: files → refusals → model → layers → identity → checks → grid → plan."""
