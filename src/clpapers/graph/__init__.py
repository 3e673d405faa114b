"""The graph of jobs: each file, with the files, code and settings that it is made of."""
