#!/usr/bin/env bash
# Usage: tests/same_results.sh COMMIT [PAPER …]. Proves that a refactoring changed no number: builds the smoke scale at COMMIT and in this
# working tree, and holds every run's result, metric, table and figure of the one against the other's, byte for byte. Both builds
# stay (.same_results/COMMIT and results/smoke), so that a second call builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify "${1:?usage: tests/same_results.sh COMMIT [PAPER …]}^{commit}")
shift
papers=${*:+papers=[$(echo "$*" | tr ' ' ',')]}
here=$PWD old=$PWD/.same_results/$commit
make --quiet .venv/.installed
export PATH=$PWD/.venv/bin:$PATH
[ -e "$old" ] || git worktree add --quiet --detach "$old" "$commit"

build() { (cd "$1" && PYTHONPATH=$1/src python -m snakemake all --cores "$(nproc)" --quiet rules --config scale=smoke "downloads=$here/downloads" ${papers:+"$papers"}); }
build "$old"
mkdir -p results/smoke
cp "$old/results/smoke/machine.json" results/smoke 2> /dev/null || true  # whether seeds form stacks, which may decide the last bit
build "$here"
python tests/same_results.py "$old" "$here" ${papers:+--part}
