#!/usr/bin/env bash
# The CPU manager on a host with cgroup v2 only, with real containers of runc: each cpuset as the kernel reports it, where a busy
# loop inside really runs, and what remains after kill -9. Skips (77) without root, cgroup v2, runc, busybox or four CPUs.
#
# usage: cpu_manager_test.sh HOLDFAST HOLDFASTD
set -uo pipefail
holdfast=$1 holdfastd=$2
runc=$(command -v runc) busybox=$(command -v busybox)
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
[ -e /sys/fs/cgroup/cgroup.controllers ] || { echo "skipped: cgroup v2 is not alone here"; exit 77; }
grep -qw cpuset /sys/fs/cgroup/cgroup.controllers || { echo "skipped: cgroup v2 has no cpuset here"; exit 77; }
[ -n "$runc" ] && [ -n "$busybox" ] || { echo "skipped: no runc, or no busybox"; exit 77; }
[ "$(nproc --all)" -ge 4 ] || { echo "skipped: needs four CPUs"; exit 77; }
directory=$(mktemp -d /tmp/hf-cpus-XXXXXX)
guard=
failures=0
containers=()
cleanup() {
  [ -z "$guard" ] || { kill -9 "$guard"; wait "$guard"; } 2>/dev/null
  for name in "${containers[@]}"; do "$runc" delete -f "$name" 2>/dev/null; done
  rm -rf "$directory" /run/holdfast/cpus
}
trap cleanup EXIT
rm -rf /run/holdfast/cpus

check() {  # what, expected, got
  if [ "$2" == "$3" ]; then echo "ok: $1: $3"; else echo "WRONG: $1: $3 instead of $2"; failures=$((failures + 1)); fi
}
eventually() {  # expected, command…
  local expected=$1
  shift
  for _ in $(seq 100); do [ "$("$@")" == "$expected" ] && break; sleep 0.1; done
  "$@"
}
start() {  # name, annotations as JSON
  local bundle=$directory/$1
  mkdir -p "$bundle/rootfs/bin" "$bundle/rootfs/proc"
  cp "$busybox" "$bundle/rootfs/bin/busybox"
  cat >"$bundle/config.json" <<JSON
{"ociVersion": "1.0.2", "annotations": $2, "root": {"path": "rootfs"}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "process": {"cwd": "/", "args": ["/bin/busybox", "sh", "-c", "while :; do :; done"], "user": {"uid": 0, "gid": 0}},
 "linux": {"cgroupsPath": "/hf-cpus-test/$1", "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}]}}
JSON
  containers+=("$1")
  "$runc" run -d --bundle "$bundle" "$1" </dev/null >/dev/null 2>"$directory/$1.log" || { cat "$directory/$1.log"; failures=$((failures + 1)); }
}
cpus() { cat "/sys/fs/cgroup/hf-cpus-test/$1/cpuset.cpus.effective" 2>/dev/null; }
pid() { "$runc" list -f json | grep -o "{\"ociVersion[^}]*\"id\":\"$1\",\"pid\":[0-9]*" | grep -o "[0-9]*$"; }
guard() {
  ASAN_OPTIONS=detect_leaks=0 "$holdfastd" --config "$directory/config.yaml" --journal "$directory" --listen none --socket none >>"$directory/guard.log" 2>&1 &
  guard=$!
  for _ in $(seq 100); do grep -q "ready containers" "$directory/guard.log" && break; sleep 0.1; done
}
printf 'cpus: {manager: true, reserved: 0}\n' >"$directory/config.yaml"
all=$(cat /sys/devices/system/cpu/online)
last=${all##*-}

guard
start hf-web '{}'
check "a container without a request" "$all" "$(cpus hf-web)"
start hf-train '{"holdfast.cpus": "2"}'
own=$(eventually 1-2 cpus hf-train)
if [ "$own" == 1-2 ]; then rest=0,3-$last; else rest=$("$holdfast" cpu status -o json | grep '"pool"' | cut -d'"' -f4); fi
check "one that asks for two: how many" 2 "$(taskset -pc "$(pid hf-train)" | sed 's/.*: //' | tr ',-' '\n\n' | grep -c .)"
check "the others leave them" "$rest" "$(eventually "$rest" cpus hf-web)"
wrong=0
for _ in $(seq 200); do
  processor=$(awk '{ print $39 }' "/proc/$(pid hf-train)/stat")
  case ",$(echo "$own" | awk -F- '{ for (i = $1; i <= $NF; i++) printf "%d,", i }')" in *",$processor,"*) ;; *) wrong=$((wrong + 1)) ;; esac
done
check "its busy loop was seen elsewhere" 0 "$wrong"
kill -9 $guard
wait $guard 2>/dev/null
check "after kill -9" "$own" "$(cpus hf-train)"
: >"$directory/guard.log"
guard
sleep 1
check "and with a new daemon" "$own $rest" "$(cpus hf-train) $(cpus hf-web)"
check "which has written nothing" 0 "$(grep -c cpus-assigned "$directory/guard.log")"
"$holdfast" cpu assign hf-web 1 >/dev/null || failures=$((failures + 1))
check "by hand, next to it" 1 "$(cpus hf-web | tr ',-' '\n\n' | grep -c .)"
"$holdfast" cpu release hf-web >/dev/null
"$runc" delete -f hf-train
check "its end gives them back" "$all" "$(eventually "$all" cpus hf-web)"
echo "$failures failures"
[ "$failures" -eq 0 ]
