#!/usr/bin/env bash
# A real NVIDIA GPU in a container that holdfast-runtime starts: its root file system has the C library and nothing else,
# and nvidia-smi and a CUDA program run in it all the same, without a hook; also after an update, a second time in the same
# root file system, in one that can be written, with the loader's cache, in one that is mounted read-only, and in a user
# namespace (with the hook); and with CAP_MKNOD, which has the hook with one GPU of several. Skips (77) without a GPU, root
# or runc.
#
# usage: [VISIBLE=GPU-…] runtime_test.sh HOLDFAST_RUNTIME CUDA_TURN
set -uo pipefail
runtime=$(realpath "$1") cuda=$(realpath "$2")
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
[ -c /dev/nvidia0 ] && command -v nvidia-smi >/dev/null || { echo "skipped: no NVIDIA GPU"; exit 77; }
command -v runc >/dev/null || { echo "skipped: no runc"; exit 77; }
directory=$(mktemp -d /tmp/hf-runtime-XXXXXX)
root=$directory/rootfs
name=hf-runtime-$$
status=0
cleanup() {
  "$runtime" delete -f "$name" 2>/dev/null
  mountpoint -q "$root" && umount -l "$root"
  rm -rf "$directory"
}
trap cleanup EXIT
fail() { echo "FAILED: $*"; status=1; }

mkdir -p "$root"/{proc,dev,sys,tmp,etc}
# The C library and its loader from the host, which real images contain.
for file in $(ldd "$cuda" $(command -v sleep) | grep -o '/[^ ]*' | sort -u) /lib/x86_64-linux-gnu/lib{dl,pthread,rt,m}.so.*; do
  [ -f "$file" ] || continue
  mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"
done
cp "$cuda" "$root/cuda_turn" && cp "$(command -v sleep)" "$root/sleep"
has_hook() { grep -q '"createContainer"' "$directory/config.json"; }
write_spec() {  # VARIABLE=VALUE…; $kind: writable, capable (of mknod), mapped (a user namespace)
  (cd "$directory" && rm -f config.json && runc spec)
  export kind
  python3 - "$directory/config.json" "$@" <<'EDIT'
import json, os, sys
path, *environment = sys.argv[1:]
spec = json.load(open(path))
spec["process"].update(terminal=False, args=["/sleep", "600"], env=["PATH=/usr/bin:/bin:/usr/local/nvidia/bin", *environment])
kind = os.environ.get("kind", "")
spec["root"]["readonly"] = kind == ""
if kind == "capable":
    for capabilities in spec["process"]["capabilities"].values():
        capabilities.append("CAP_MKNOD")
if kind == "mapped":
    mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    spec["linux"]["namespaces"].append({"type": "user"})
    spec["linux"].update(uidMappings=mapping, gidMappings=mapping)
json.dump(spec, open(path, "w"))
EDIT
}

write_spec "NVIDIA_VISIBLE_DEVICES=${VISIBLE:-all}" NVIDIA_DRIVER_CAPABILITIES=compute,utility
before=$(date +%s%N)
"$runtime" create -b "$directory" "$name" </dev/null >"$directory/out" 2>&1 || { cat "$directory/out"; fail "create"; exit 1; }
echo "create took $((($(date +%s%N) - before) / 1000000)) ms, $(grep -o '"destination"' "$directory/config.json" | wc -l) mounts"
"$runtime" start "$name" || fail start
smi=$(python3 -c 'import json,sys; print(next(m["destination"] for m in json.load(open(sys.argv[1]))["mounts"] if m["destination"].endswith("/nvidia-smi")))' "$directory/config.json")
"$runtime" exec "$name" "$smi" -L || fail "nvidia-smi"
"$runtime" exec "$name" /cuda_turn && echo "the CUDA program ran" || fail "CUDA"
"$runtime" exec "$name" "$smi" --query-gpu=name,driver_version --format=csv,noheader || fail "nvidia-smi asks the driver"
"$runtime" update --cpu-share 512 "$name" || fail update
"$runtime" exec "$name" /cuda_turn && echo "the CUDA program ran after an update" || fail "CUDA after the update"
grep -q . "/run/holdfast/ledger/$name.json" || fail "no ledger"
has_hook && fail "a hook"
"$runtime" delete -f "$name" || fail delete
[ ! -e "/run/holdfast/ledger/$name.json" ] || fail "the ledger stays"

run_once() {  # TITLE: starts it, runs both programs, lists the device nodes, removes it
  write_spec "NVIDIA_VISIBLE_DEVICES=${VISIBLE:-all}" NVIDIA_DRIVER_CAPABILITIES=compute,utility
  "$runtime" create -b "$directory" "$name" </dev/null >"$directory/out" 2>&1 || { cat "$directory/out"; fail "$1: create"; return; }
  "$runtime" start "$name" || fail "$1: start"
  "$runtime" exec "$name" "$smi" -L >/dev/null || fail "$1: nvidia-smi"
  "$runtime" exec "$name" /cuda_turn >/dev/null || fail "$1: CUDA"
  pid=$("$runtime" state "$name" | python3 -c 'import json,sys; print(json.load(sys.stdin)["pid"])')
  echo "$1: fine, hook: $(has_hook && echo yes || echo no), nodes: $(cd "/proc/$pid/root/dev" && find . -name 'nvidia*' | sort | tr '\n' ' ')"
  "$runtime" delete -f "$name" || fail "$1: delete"
}
run_once "again in the same root"
has_hook && fail "a hook the second time"
kind=writable run_once "a root that can be written"
has_hook && fail "a hook in a root that can be written"
ldconfig -X -r "$root" 2>/dev/null
[ -e "$root/etc/ld.so.cache" ] && run_once "with the loader's cache"
has_hook && fail "a hook beside the cache"
kind=capable run_once "with CAP_MKNOD"
[ -n "${VISIBLE:-}" ] || ! has_hook || fail "a hook though it has every GPU"
gpus=$(nvidia-smi -L | grep -c '^GPU')
if [ "$gpus" -ge 2 ] && grep -q '^ModifyDeviceFiles: 1' /proc/driver/nvidia/params; then
  VISIBLE=$(nvidia-smi -L | sed -n '1s/.*(UUID: \(.*\))/\1/p') kind=capable run_once "with CAP_MKNOD and one GPU of $gpus"
  has_hook || fail "no hook though it could create the nodes of other GPUs"
else
  echo "not tested: CAP_MKNOD and one GPU of several ($gpus GPUs here, $(grep ModifyDeviceFiles /proc/driver/nvidia/params))"
fi
if mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"; then
  run_once "a root that is mounted read-only"
  has_hook && fail "a hook that could not write"
else
  fail "no read-only mount can be made"
fi
mountpoint -q "$root" && umount -l "$root"
chmod 755 "$directory"
chown -R 100000:100000 "$root"
kind=mapped run_once "in a user namespace"
has_hook || fail "no hook in a user namespace"

write_spec
"$runtime" create -b "$directory" "$name" </dev/null >"$directory/out" 2>&1 && "$runtime" start "$name" || fail "without a GPU"
"$runtime" exec "$name" /cuda_turn 2>/dev/null && fail "a GPU that was not requested"
"$runtime" delete -f "$name"

write_spec NVIDIA_VISIBLE_DEVICES=7
if "$runtime" create -b "$directory" "$name" </dev/null >"$directory/out" 2>&1; then fail "a GPU that is not there"; else cat "$directory/out"; fi
exit $status
