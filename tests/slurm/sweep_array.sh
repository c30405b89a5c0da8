#!/usr/bin/env bash
# sweep_array.sh STEPSIM SBATCH_SCRIPT: the sweep as a job array of a real Slurm gives the bytes of the sweep without it.
# Controller, node and authentication run here, with their own configuration in a temporary folder, and end with this script.
set -euo pipefail
stepsim=$1 script=$2

# Where everything has to be tested, STEPSIM_REQUIRE_SLURM is set.
skip() { echo "skipped: $*"; exit "${STEPSIM_REQUIRE_SLURM:-0}"; }
for program in munged slurmctld slurmd sbatch scontrol sinfo setpriv; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || skip "no $program here (Debian: apt-get install slurm-wlm munge)"
done
((EUID == 0)) || skip "slurmd needs root"

work=$(mktemp -d)
daemons=()
finish() {
  local code=$?
  trap '' EXIT INT TERM
  [[ ! -f $work/up ]] || scancel --user=root 2>/dev/null || true
  for _ in {1..50}; do [[ ! -f $work/up || -z $(squeue -h 2>/dev/null) ]] && break; sleep 0.1; done
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do
    kill "${daemons[i]}" 2>/dev/null || true
    for _ in {1..50}; do kill -0 "${daemons[i]}" 2>/dev/null || break; sleep 0.1; done
    kill -9 "${daemons[i]}" 2>/dev/null || true
    wait "${daemons[i]}" 2>/dev/null || true
  done
  if ((code != 0)); then tail -n 30 "$work"/*.log "$work"/*.out 2>/dev/null || true; fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 143' INT TERM

# In the foreground, and gone with this script even when that is killed.
daemon() {
  PATH=$PATH:/usr/sbin setpriv --pdeathsig KILL "$@" >"$work/$1.out" 2>&1 &
  daemons+=($!)
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() {  # WHAT COMMAND...: until it succeeds
  local what=$1
  shift
  for _ in {1..400}; do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  echo "waited in vain for $what"
  exit 1
}

host=$(hostname -s)
chmod 755 "$work"
mkdir -p "$work"/{state,spool,munge,jobs}
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 600 "$work/munge/key"
cat >"$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
export SLURM_CONF=$work/slurm.conf

daemon munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
  --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed"
await munged munge --socket="$work/munge/socket" -n
daemon slurmctld -D
daemon slurmd -D
touch "$work/up"
await "a node that is idle" bash -c 'sinfo -h -o %t | grep -qx idle'

cd "$work/jobs"
words=(llama32-3b-sft-zero3 --vary job.micro_batch=1,2,4 --vary strategy.zero=2,3)
"$stepsim" sweep "${words[@]}" -o alone >/dev/null
STEPSIM=$stepsim sbatch --array=1-3 --cpus-per-task=1 --output="$work/jobs/task-%a.out" "$script" "${words[@]}" -o array
await "the end of the jobs" bash -c '[[ -z $(squeue -h) ]]'
"$stepsim" merge array.shard-*-of-3.h5 -o array >/dev/null
cmp alone.csv array.csv
cmp alone.h5 array.h5
ls | tr '\n' ' '
