# A Slurm cluster of one node, this machine, in a folder of its own: `up FOLDER` and `down FOLDER`, to be sourced.
# The node says it has two CPUs and one GPU; the GPU is pretended, it is only counted. Nothing outside the folder is touched.

up() {
    local folder host memory
    folder=$(realpath "$1") host=$(hostname -s) memory=$(free -m | awk '/^Mem:/ {print int($2 * 0.9)}')
    mkdir -p "$folder"/{munge,state,spool}
    chmod 700 "$folder/munge"
    dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
    chmod 400 "$folder/munge/key"
    munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
        --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --force

    cat > "$folder/slurm.conf" <<EOF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
# Whatever limits processes on a real cluster is the machine's, not the workflow's: here Slurm only counts.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
MpiDefault=none
MinJobAge=3600
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
CommunicationParameters=NoInAddrAny
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
    echo "NodeName=$host Name=gpu File=/dev/null" > "$folder/gres.conf"
    ln -s "$folder"/{slurm,gres}.conf /etc/slurm/  # where job steps look; fails where there is a Slurm already
    slurmctld
    slurmd
    for _ in $(seq 60); do
        if sinfo --noheader --format=%T 2> /dev/null | grep -q idle; then return; fi
        sleep 1
    done
    tail "$folder"/*.log >&2
    return 1
}

down() {
    local pid
    scancel --user="$(id -un)" 2> /dev/null || true
    for pid in "$1"/slurmd.pid "$1"/slurmctld.pid "$1"/munge/pid; do
        if [ -e "$pid" ]; then kill "$(cat "$pid")" 2> /dev/null || true; fi
    done
    rm -f /etc/slurm/{slurm,gres}.conf
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
