#!/usr/bin/env bash
# Usage: check.sh [PAPER]. Builds the smoke scale, or one paper's, through a real Slurm and holds every result against those
# that are built here already (snakemake all --cores --config scale=smoke). On the way runs of `streaming` train as an array, a
# training job is cancelled and must be tried again, and one asks for the GPU. Needs root and Debian's slurm-wlm and munge, which it installs; stops and removes what it started.
# Without them it says so and ends well.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
source tests/slurm/cluster.sh

skip() { echo "Slurm: not tested here, $1"; exit 0; }

[ "$(id -u)" = 0 ] || skip "as that needs root"
command -v slurmd munged > /dev/null \
    || { apt-get update -qq && apt-get install -y -qq --no-install-recommends slurm-wlm munge; } > /dev/null 2>&1 \
    || skip "as slurm-wlm and munge cannot be installed"
[ ! -e /etc/slurm/slurm.conf ] || skip "as this machine belongs to a cluster already"
[ -e results/smoke/runs/index.csv ] || { echo "Slurm: no results to compare with: snakemake all --cores --config scale=smoke"; exit 1; }

work=$(mktemp -d)
finish() { down "$work/slurm"; sleep 2; rm -rf "$work" 2> /dev/null || { sleep 5; rm -rf "$work"; }; }
trap finish EXIT
mkdir "$work/project" "$work/slurm"
git ls-files -z | xargs -0 cp --parents --target-directory="$work/project"
up "$work/slurm"
cd "$work/project"
export PYTHONPATH=$PWD/src
mkdir -p results/smoke
cp "$here/results/smoke/machine.json" results/smoke  # whether seeds form stacks, which may decide the last bit

slurm=(snakemake --profile profiles/slurm --quiet rules progress
    --default-resources mem_mb=2000 runtime=30 abreast=1 slurm_account=none slurm_partition=main
    --slurm-status-command squeue --slurm-init-seconds-before-status-checks 5)
config=(--config scale=smoke "downloads=$here/downloads" ${1:+"papers=[$1]"})

# The Slurm jobs that are training now.
training() {
    local process
    for process in $(pgrep --full "clpapers train"); do
        tr '\0' '\n' < "/proc/$process/environ" | sed -n 's/^SLURM_JOB_ID=//p'
    done 2> /dev/null
}

fail() { tail -n 60 "$work"/*.out; echo "Slurm: $1"; exit 1; }

# Runs as an array.
"${slurm[@]}" results/smoke/metrics/streaming/table1_cifar100.csv --slurm-array-jobs train "${config[@]}" device=cpu \
    > "$work/array.out" 2>&1 || fail "an array failed"
tasks=$(squeue --noheader --states=all --format='%i %k' | grep -c '_.*rule_train') || fail "no array was submitted"
echo "Slurm: $tasks runs trained as an array"

# A run that is to train on a GPU gets the one there is, and says that PyTorch sees none.
run=$(find results/smoke/runs/cifar100_resnet50 -name 'seed*.json' ! -name '*.record.json' | head -n 1)
"${slurm[@]}" "$run" --force --retries 0 "${config[@]}" device=cuda > "$work/gpu.out" 2>&1 && fail "a pretended GPU trained"
squeue --noheader --states=FAILED --Format=tres-per-job:40,comment:40 | grep -q "^gres:gpu:1 .*rule_train" || fail "no GPU was asked for"
grep -rq "PyTorch sees no GPU here" results/smoke/logs/runs || fail "the log does not say why"
echo "Slurm: a run that asks for a GPU is given it"

# Everything, runs in groups too so that it takes minutes; a job is cancelled while it trains.
"${slurm[@]}" all "${config[@]}" device=cpu --latency-wait 20 \
    --groups stream=streams metrics=metrics figure=rendering table=rendering reported=rendering train=runs \
    --group-components streams=50 metrics=50 rendering=50 runs=20 > "$work/all.out" 2>&1 &
building=$!
victim=
until [ -n "$victim" ]; do
    kill -0 $building 2> /dev/null || fail "it ended before anything trained"
    sleep 0.2
    victim=$(training | head -n 1) || true  # a process may end while it is looked at
done
scancel "$victim"
wait $building || fail "the build failed, or what was cancelled was not made again"
squeue --noheader --states=CANCELLED --format=%A | grep -qx "$victim" || fail "$victim was not cancelled"
grep -q "Trying to restart" "$work/all.out" || fail "$victim was not tried again"
echo "Slurm: a job was cancelled while it trained, and tried again"
echo "Slurm: all built, in $(squeue --noheader --states=all | wc -l) jobs of Slurm's"

python "$here/tests/same_results.py" . "$here" ${1:+--part} > "$work/compare.out" || fail "not what is built here"
echo "Slurm: $(cat "$work/compare.out")"
