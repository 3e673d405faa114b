# Snakemake runs this in a new environment of envs/clpapers.yaml, from the project's folder: what make installs, by pip.
set -e
pip install --quiet --requirement requirements.lock
pip install --quiet --no-deps --no-build-isolation --editable .
