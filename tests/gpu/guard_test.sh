#!/usr/bin/env bash
# A real NVIDIA GPU in a cgroup that is attacked many times, while nvidia-smi and a CUDA program open the GPU by turns: how many
# of them fail without the guard, with it (with the shield none does), and in mode lock. Skips (77) without a GPU or root.
#
# usage: guard_test.sh HOLDFAST HOLDFASTD CUDA_TURN [ATTACKS]
set -uo pipefail
holdfast=$1 holdfastd=$2 cuda=$3 attacks=${4:-1000}
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
[ -c /dev/nvidia0 ] && command -v nvidia-smi >/dev/null || { echo "skipped: no NVIDIA GPU"; exit 77; }
root=$(awk '$9 == "cgroup2" || $3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$root" ] || { echo "skipped: no cgroup v2"; exit 77; }
name=hf-gpu-$$
directory=$(mktemp -d /tmp/hf-gpu-XXXXXX)
parent=$root/$name-parent
cgroup=$parent/$name
ledger=/run/holdfast/ledger/$name.json
guard=
init=
cleanup() {
  [ -z "$guard" ] || { kill "$guard"; wait "$guard"; } 2>/dev/null
  [ -z "$init" ] || kill -9 "$init" 2>/dev/null
  echo 1 >"$cgroup/cgroup.kill" 2>/dev/null
  sleep 0.3
  rmdir "$cgroup" "$parent" 2>/dev/null
  rm -rf "$directory" "$ledger"
}
trap cleanup EXIT

mkdir "$parent" "$cgroup" && mkdir -p -m 700 /run/holdfast/ledger
owed=
for node in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-caps/*; do
  [ -c "$node" ] || continue
  major=$((16#$(stat -c %t "$node"))) minor=$((16#$(stat -c %T "$node")))
  owed+="${owed:+,}{\"path\":\"$node\",\"type\":\"c\",\"major\":$major,\"minor\":$minor,\"access\":\"rw\"}"
done
printf '{"version":1,"container":"%s","cgroup":"/%s","nodes":[%s]}\n' "$name" "$name-parent/$name" "$owed" >"$ledger"
chmod 600 "$ledger"

# The container: the first process of a pid namespace, in its own cgroup and mount namespace. It runs both programs by turns.
cat >"$directory/turns" <<'TURNS'
#!/usr/bin/env bash
cuda=$1 directory=$2
echo 0 >"$3/cgroup.procs"
while :; do
  if [ -e "$directory/go" ]; then
    phase=$(cat "$directory/go")
    nvidia-smi -L >/dev/null 2>>"$directory/$phase.errors"; echo "nvidia-smi $?" >>"$directory/$phase"
    "$cuda" 2>>"$directory/$phase.errors"; echo "cuda $?" >>"$directory/$phase"
  else
    sleep 0.05
  fi
done
TURNS
chmod +x "$directory/turns"
unshare --pid --fork --mount-proc "$directory/turns" "$cuda" "$directory" "$cgroup" &
init=$!
sleep 0.5

# Attaches a program that refuses everything with another major than 1 beside the existing ones, as systemd attaches its own, with
# bpf(2). Prints how many of them the kernel refused.
cat >"$directory/deny" <<'DENIER'
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
lines = [(0x61, 0x12, 4, 0), (0xB7, 0, 0, 1), (0x15, 2, 1, 1), (0xB7, 0, 0, 0), (0x95, 0, 0, 0)]  # return major == 1
code = ctypes.create_string_buffer(b"".join(struct.pack("<BBhi", *line) for line in lines))
licence = ctypes.create_string_buffer(b"GPL")
def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"))
    return libc.syscall(321, command, buffer, 128)
group = os.open(sys.argv[1], os.O_RDONLY)
refused = 0
for _ in range(int(sys.argv[2])):
    program = bpf(5, struct.pack("<IIQQ", 15, len(lines), ctypes.addressof(code), ctypes.addressof(licence)))
    done = bpf(8, struct.pack("<IIII", group, program, 6, 2))
    refused += done < 0 and ctypes.get_errno() == 1
    os.close(program)
    time.sleep(float(sys.argv[3]))
print(refused)
DENIER
attack() { python3 "$directory/deny" "$cgroup" "$1" "$2"; }  # TIMES PAUSE
count() { grep -c "^$2 $3" "$directory/$1" 2>/dev/null || true; }
report() {
  local all failed
  for what in nvidia-smi cuda; do
    all=$(count "$1" $what '') failed=$((all - $(count "$1" $what '0$')))
    echo "$1: $what: $failed of $all turns failed"
  done
}
turn_on() { echo "$1" >"$directory/go.new"; mv "$directory/go.new" "$directory/go"; }
turn_off() { rm -f "$directory/go"; sleep 3; }

turn_on calm; sleep 8; turn_off; report calm
turn_on unguarded; sleep 1; attack 1 0 >/dev/null; sleep 8; turn_off; report unguarded
"$holdfast" heal --all >/dev/null

"$holdfastd" --journal "$directory/journal" --listen none --socket none 2>"$directory/log" &
guard=$!
for _ in $(seq 100); do grep -q "ready " "$directory/log" && break; sleep 0.1; done
sleep 2
turn_on guarded
before=$(date +%s.%N)
attack "$attacks" 0.02 >/dev/null
echo "guarded: $attacks attacks in $(awk -v a="$before" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }') s"
turn_off; report guarded
"$holdfast" blame "$name" --journal "$directory/journal" -o json >"$directory/blame.json"
echo "guarded: $(tail -n 1 <("$holdfast" blame "$name" --journal "$directory/journal"))"
grep -o '"loss_ns": *[0-9]*' "$directory/blame.json" | grep -o '[0-9]*$' | sort -n |
  awk '{ v[NR] = $1 } END { printf "guarded: loss by the record: n %d, median %.0f µs, p99 %.0f µs, max %.0f µs\n", NR, v[int((NR + 1) / 2)] / 1000, v[int(NR * 0.99)] / 1000, v[NR] / 1000 }'
cat "$directory"/guarded.errors | sort | uniq -c | sort -rn | head -n 5
kill "$guard"; wait "$guard"; guard=
cp "$directory/log" "$directory/guarded.log"
grep -o '"held_opens": *[0-9]*' "$directory/blame.json" | grep -o '[0-9]*$' | awk '{ n += $1 } END { printf "guarded: %d opens would have failed without the shield\n", n }'

printf 'guard:\n  mode: lock\n' >"$directory/lock.yaml"
"$holdfastd" --config "$directory/lock.yaml" --journal "$directory/journal" --listen none --socket none 2>"$directory/log" &
guard=$!
for _ in $(seq 100); do grep -q "locked " "$directory/log" && break; sleep 0.1; done
turn_on locked
refused=$(attack 100 0.05)
turn_off; report locked
echo "locked: the kernel refused $refused of 100 programs that would deny everything"

failed() { [ "$(count "$1" nvidia-smi '')" -ne "$(count "$1" nvidia-smi '0$')" ] || [ "$(count "$1" cuda '')" -ne "$(count "$1" cuda '0$')" ]; }
status=0
failed calm && { echo "FAILED: turns fail without any attack"; status=1; }
failed unguarded || { echo "FAILED: the attack did nothing"; status=1; }
failed locked && { echo "FAILED: turns fail with the exclusive attachment"; status=1; }
[ "$refused" = 100 ] || { echo "FAILED: a program was attached despite the exclusive attachment"; status=1; }
grep -q "shielded container=" "$directory/guarded.log" && failed guarded && { echo "FAILED: turns fail with the shield"; status=1; }
[ "$(count guarded cuda '0$')" -gt 0 ] || { echo "FAILED: nothing works with the guard"; status=1; }
exit $status
