#!/usr/bin/env bash
# On a host with an NVIDIA GPU and root: what holdfast-kube offers beside what nvidia-smi says, what a stand-in for kubelet is given,
# that the CDI spec has it, and that a CUDA program runs in a container that holdfast-runtime starts with it (where there is runc).
# usage: plugin_test.sh HOLDFAST HOLDFAST-KUBE KUBELET_STAND_IN HOLDFAST-RUNTIME CUDA_TURN, with holdfast-runtime beside HOLDFAST-KUBE or installed; exit 77 if there is no GPU to test with.
set -euo pipefail
holdfast=$1 kube=$2 kubelet=$3 runtime=$4 cuda=$5
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1"; cat "$directory"/*.log; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -c /dev/nvidiactl ] && command -v nvidia-smi >/dev/null || skip "needs an NVIDIA GPU"
[ -x "$(dirname "$kube")/holdfast-runtime" ] || [ -x /usr/bin/holdfast-runtime ] || skip "needs holdfast-runtime, the hook of the CDI spec"
directory=$(mktemp -d)
plugin=
clean() {
  [ -z "$plugin" ] || kill "$plugin" 2>/dev/null || true
  rm -rf "$directory"
}
trap clean EXIT
spec=$directory/gpus.yaml
mkdir "$directory/plugins"
cat >"$directory/config.yaml" <<C
kube: {directory: $directory/plugins, strategies: [cdi-cri, envvar]}
cdi: {file: $spec}
C
uuid=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -n 1)
pci=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader | head -n 1 | tr 'A-F' 'a-f' | sed 's/^0000//')
numa=$(cat "/sys/bus/pci/devices/$pci/numa_node")

echo "--- once"
"$kube" --config "$directory/config.yaml" --once | tee "$directory/once.log"
grep -q "\"id\": \"$uuid\"" "$directory/once.log" || fail "--once does not offer $uuid"
[ "$numa" -lt 0 ] || grep -q "\"numa\": $numa" "$directory/once.log" || fail "--once does not say that it is at NUMA node $numa"

echo "--- offered and allocated"
mkfifo "$directory/commands"
"$kubelet" "$directory/plugins" <"$directory/commands" >"$directory/kubelet.log" 2>&1 &
exec 3>"$directory/commands"
"$kube" --config "$directory/config.yaml" 2>"$directory/plugin.log" &
plugin=$!
wait_for() { for i in $(seq 150); do ! grep -q "$1" "$directory/kubelet.log" || return 0; sleep 0.1; done; fail "kubelet never saw: $1"; }
wait_for "\"$uuid\":{\"health\":\"Healthy\""
echo "allocate nvidia.com/gpu $uuid" >&3
wait_for '"event":"allocated"'
grep '"event":"allocated"' "$directory/kubelet.log"
for node in "/dev/nvidiactl" "/dev/nvidia-uvm" "/dev/nvidia-uvm-tools" "$(nvidia-smi -q -i "$uuid" | sed -n 's/.*Minor Number *: */\/dev\/nvidia/p')"; do
  grep '"event":"allocated"' "$directory/kubelet.log" | grep -q "\"$node\",\"$node\",\"rw\"" || fail "$node was not given"
done
grep -q "$uuid" "$spec" || fail "the CDI spec does not have $uuid"
"$holdfast" cdi check "$spec" || fail "the CDI spec has faults"
echo "memory: $(awk '/VmRSS/ { print $2, $3 }' "/proc/$plugin/status")"
grep -E "healthy|ready|connected" "$directory/plugin.log"
echo "end" >&3
kill "$plugin"
wait "$plugin" || fail "it did not end with 0"
plugin=
echo "--- a CUDA program in a container with the answer"
visible=$(sed -n 's/.*"NVIDIA_VISIBLE_DEVICES":"\([^"]*\)".*/\1/p' "$directory/kubelet.log" | head -n 1)
[ "$visible" = "$uuid" ] || fail "NVIDIA_VISIBLE_DEVICES is '$visible'"
status=0
VISIBLE=$visible "$(dirname "$0")/runtime_test.sh" "$runtime" "$cuda" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "the container"
echo passed
