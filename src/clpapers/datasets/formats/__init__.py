"""Formats of data sets: one module each, which decodes files to arrays.

A module has `present(files) -> bool`, whether the files look like its format at all, and `decode(files, spec) ->
Splits`, which raises SourceError for anything that does not follow the format exactly. `spec` is the data set's entry
in config/datasets.yaml. The format of a data set with class attributes also has `attributes(files, spec) ->
np.ndarray`, float32 [C, A] with rows of length 1. Any other
error of damaged bytes becomes one, too (`files.guarded`). No pickle runs code.
"""
