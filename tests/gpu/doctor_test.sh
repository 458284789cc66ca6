#!/usr/bin/env bash
# On a host with an NVIDIA GPU, root and cgroup v2: the reports of `devices` and `doctor`, beside the messages of nvidia-smi and CUDA,
# for a container that lost nvidiactl and for one that lost nvidia-uvm; and that the cures of doctor work.
# usage: doctor_test.sh HOLDFAST; exit 77 if there is no GPU to test with.
set -euo pipefail
holdfast=$1
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1"; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -c /dev/nvidiactl ] && command -v nvidia-smi >/dev/null || skip "needs an NVIDIA GPU"
v2=$(awk '$(NF-2) == "cgroup2" { print $5; exit }' /proc/self/mountinfo)
[ -n "$v2" ] || skip "needs cgroup v2"
id=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
group="$v2/docker/$id"
mkdir -p "$group" 2>/dev/null || skip "cannot create a cgroup in $v2"
ledger="/run/holdfast/ledger/$id.json"
worker=
clean() {
  [ -z "$worker" ] || kill -9 "$worker" 2>/dev/null || true
  rm -f "$ledger"; rmdir -p "$(dirname "$ledger")" 2>/dev/null || true
  for i in 1 2 3 4 5; do rmdir "$group" 2>/dev/null && break; sleep 0.2; done
  rmdir "$v2/docker" 2>/dev/null || true
}
trap clean EXIT

in_group() { bash -c 'echo 0 > "$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
major_of() { awk -v name="$1" '/^Block/ { exit } $2 == name { print $1; exit }' /proc/devices; }
frontend=$(major_of nvidia); frontend=${frontend:-$(major_of nvidia-frontend)}; frontend=${frontend:-195}
uvm=$(major_of nvidia-uvm)
minor=$(sed -n 's/^Device Minor:[[:space:]]*//p' /proc/driver/nvidia/gpus/*/information | head -n 1)
[ -n "$uvm" ] && [ -n "$minor" ] || skip "needs nvidia-uvm loaded"

echo "--- devices"
"$holdfast" devices || fail "devices reports a problem"
"$holdfast" devices -o json | grep -q '"uuid": "GPU-' || fail "devices shows no UUID"

# A handmade container: separate namespaces, a cgroup, and an entry in the ledger that it was given the GPU.
bash -c 'echo 0 > "$0/cgroup.procs" && exec unshare --mount --pid --fork --kill-child sleep 600' "$group" &
worker=$!
sleep 0.5
(umask 077; mkdir -p "$(dirname "$ledger")"
 node() { printf '{"path": "%s", "type": "c", "major": %s, "minor": %s, "access": "rw"}' "$@"; }
 printf '{"version": 1, "container": "%s", "cgroup": "/docker/%s", "nodes": [%s, %s, %s]}\n' "$id" "$id" \
   "$(node "/dev/nvidia$minor" "$frontend" "$minor")" "$(node /dev/nvidiactl "$frontend" 255)" "$(node /dev/nvidia-uvm "$uvm" 0)" >"$ledger")

echo "--- all is well"
"$holdfast" ps || fail "ps reports a problem"
"$holdfast" doctor "${id:0:62}" || fail "doctor reports a problem of a healthy container"
"$holdfast" doctor "$id" --deep || fail "doctor --deep reports a problem of a healthy container"

lose() {  # NODE RULE MESSAGE, which the libraries must report
  echo "--- lost: $1"
  "$holdfast" revoke "$id" "$2" >/dev/null
  in_group nvidia-smi -L || true
  local said report status=0
  said=$(in_group "$holdfast" devices || true)
  echo "$said" | sed -n '1,3p'
  echo "$said" | grep -q "$3" || fail "the libraries do not report '$3'"
  report=$("$holdfast" doctor "$id") || status=$?
  echo "$report"
  [ "$status" -eq 1 ] || fail "doctor exits with $status"
  echo "$report" | grep -q "HF-101 critical.*$1" || fail "doctor does not name $1"
  echo "$report" | sed -n 's/^  cure: holdfast //p' | while read -r cure; do eval "\"\$holdfast\" $cure" >/dev/null; done
  "$holdfast" doctor "$id" || fail "the cure did not help"
  in_group nvidia-smi -L || fail "nvidia-smi does not work after the cure"
}
lose /dev/nvidiactl "c $frontend:255 rw" "NVML: Unknown Error (999)"
lose /dev/nvidia-uvm "c $uvm:0 rw" "CUDA: .*(999)"
echo "passed"
