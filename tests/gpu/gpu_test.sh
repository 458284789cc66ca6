#!/usr/bin/env bash
# On a host with an NVIDIA GPU, root and cgroup v2: a process loses its GPU and gets it back, without a restart.
# usage: gpu_test.sh HOLDFAST; exit 77 if there is no GPU to test with.
set -euo pipefail
holdfast=$1
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1"; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -c /dev/nvidiactl ] && command -v nvidia-smi >/dev/null || skip "needs an NVIDIA GPU"
v2=$(awk '$(NF-2) == "cgroup2" { print $5; exit }' /proc/self/mountinfo)
[ -n "$v2" ] || skip "needs cgroup v2"
group="$v2/hf-gpu-$$"
mkdir "$group" 2>/dev/null || skip "cannot create a cgroup in $v2"
worker=
trap '[ -z "$worker" ] || kill "$worker" 2>/dev/null || true; for i in 1 2 3 4 5; do rmdir "$group" 2>/dev/null && break; sleep 0.2; done' EXIT

in_group() { bash -c 'echo 0 > "$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
major_of() { awk -v name="$1" '/^Block/ { exit } $2 == name { print $1; exit }' /proc/devices; }

in_group nvidia-smi -L || fail "nvidia-smi does not work to begin with"
bash -c 'echo 0 > "$0/cgroup.procs" && exec sleep 300' "$group" &
worker=$!
sleep 0.2
grep -q "hf-gpu-$$" "/proc/$worker/cgroup" || fail "the worker did not join its cgroup"
frontend=$(major_of nvidia-frontend); frontend=${frontend:-$(major_of nvidia)}; frontend=${frontend:-195}
uvm=$(major_of nvidia-uvm)

echo "--- the loss: another process refuses c $frontend:*"
"$holdfast" revoke "pid:$worker" "c $frontend:* rwm"
if in_group nvidia-smi -L; then fail "the GPU is still there"; fi
"$holdfast" rules "pid:$worker" --ask "c:$frontend:255:rw" && fail "holdfast does not see the loss"

echo "--- the repair"
rules=("c $frontend:* rw")
[ -z "$uvm" ] || rules+=("c $uvm:* rw")
"$holdfast" grant "pid:$worker" "${rules[@]}"
in_group nvidia-smi -L || fail "the GPU did not come back"
"$holdfast" rules "pid:$worker" --ask "c:$frontend:255:rw" --ask "c:$frontend:0:rw" || fail "holdfast does not see the repair"
"$holdfast" rules "pid:$worker"
echo "passed"
