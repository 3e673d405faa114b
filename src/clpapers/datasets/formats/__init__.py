"""How the bytes of each kind of source become arrays: one module a format.

Each has `present(files) -> bool`, whether these files look like the format at all, and
`decode(files, spec) -> Splits`, which raises SourceError on anything that is not exactly as it should be.
`spec` is the data set's entry in config/datasets.yaml; a format of one that has class attributes also has
`attributes(files, spec) -> np.ndarray`, float32 [C, A] with rows of length 1. Nothing here trusts what it
reads: sizes are checked before anything is allocated, and no pickle runs code.
"""
