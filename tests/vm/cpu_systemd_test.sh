#!/usr/bin/env bash
# The CPU manager under a real systemd on cgroup v2: boots Debian 12 with four CPUs in qemu and starts containers of runc,
# crun, podman and docker there. A reload of systemd, which writes the cpusets of its units again, must keep each
# container's CPUs. Wants root, mmdebstrap, qemu-system-x86_64 and a package mirror; takes about ten minutes (emulated).
#
# usage: cpu_systemd_test.sh HOLDFAST HOLDFASTD [ROOT]   # ROOT: a root file system of an earlier run, to be used again
set -euo pipefail
holdfast=$1 holdfastd=$2 root=${3:-}
for program in mmdebstrap qemu-system-x86_64 mkfs.ext4; do
  command -v $program >/dev/null || { echo "skipped: needs $program"; exit 77; }
done
directory=$(mktemp -d /tmp/hf-vm-XXXXXX)
trap 'rm -rf "$directory"' EXIT
if [ -z "$root" ]; then
  root=$directory/root
  mmdebstrap --variant=minbase --include=systemd,systemd-sysv,dbus,runc,crun,podman,docker.io,ca-certificates,busybox-static,linux-image-amd64,udev,kmod bookworm "$root"
fi
install -m 755 "$holdfast" "$root/usr/bin/holdfast"
install -m 755 "$holdfastd" "$root/usr/sbin/holdfastd"
cat >"$root/etc/systemd/system/hf-test.service" <<'UNIT'
[Unit]
After=basic.target dbus.socket
[Service]
ExecStart=/bin/bash /root/test.sh
StandardOutput=file:/dev/console
StandardError=file:/dev/console
ExecStopPost=/bin/systemctl poweroff --force --force
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../hf-test.service "$root/etc/systemd/system/multi-user.target.wants/hf-test.service"
cat >"$root/root/test.sh" <<'TEST'
failures=0
check() {  # what, expected, got
  if [ "$2" == "$3" ]; then echo "hf: ok: $1: $3"; else echo "hf: WRONG: $1: $3 instead of $2"; failures=$((failures + 1)); fi
}
eventually() {  # expected, command…
  local expected=$1
  shift
  for _ in $(seq 300); do [ "$("$@")" == "$expected" ] && break; sleep 0.2; done
  "$@"
}
start() {  # name, annotations, runtime, more resources
  mkdir -p /root/$1/rootfs/{bin,dev,proc}
  cp /bin/busybox /root/$1/rootfs/bin/
  cat >/root/$1/config.json <<JSON
{"ociVersion": "1.0.2", "annotations": $2, "root": {"path": "rootfs"}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "process": {"cwd": "/", "args": ["/bin/busybox", "sleep", "100000"], "user": {"uid": 0, "gid": 0}},
 "linux": {"cgroupsPath": "system.slice:hf:$1", "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}],
           "resources": {"devices": [{"allow": false, "access": "rwm"}]${4:-}}}}
JSON
  ${3:-runc} --systemd-cgroup run -d --bundle /root/$1 $1 </dev/null >/root/$1/log 2>&1 || cat /root/$1/log
}
cpus_of() { sed -n 's/^Cpus_allowed_list:\t//p' /proc/$("$@")/status 2>/dev/null; }  # command that prints the pid
cpus() { cat /sys/fs/cgroup/system.slice/hf-$1.scope/cpuset.cpus.effective 2>/dev/null; }
mkdir -p /etc/holdfast
echo 'cpus: {manager: true, reserved: 0}' >/etc/holdfast/config.yaml
systemd-run --quiet --unit=holdfastd /usr/sbin/holdfastd --listen none
start web '{}'
start told '{}' runc ', "cpu": {"cpus": "0-3"}'  # systemd knows these CPUs from the runtime
start train '{"holdfast.cpus": "2"}'
check "the machine" 0-3 "$(cat /sys/devices/system/cpu/online)"
check "one that asks for two" 1-2 "$(eventually 1-2 cpus train)"
check "the other leaves them" 0,3 "$(eventually 0,3 cpus web)"
check "so does one with a cpuset" "0,3 0-3" "$(eventually 0,3 cpus told) $(systemctl show -P AllowedCPUs hf-told.scope)"
check "the unit has them in a file" 1 "$(grep -c AllowedCPUs=1-2 /run/systemd/system.control/hf-train.scope.d/50-holdfast-cpus.conf)"
for round in 1 2 3; do
  systemctl daemon-reload
  check "after reload $round" "1-2 0,3 0,3" "$(cpus train) $(cpus web) $(cpus told)"
done
check "what systemd says" 1-2 "$(systemctl show -P AllowedCPUs hf-train.scope)"
runc --systemd-cgroup update --cpu-share 512 train
check "after an update of its resources" "1-2 0,3" "$(eventually 1-2 cpus train) $(cpus web)"
holdfast cpu release train >/dev/null
check "released" "0-3 0-3" "$(eventually 0-3 cpus train) $(eventually 0-3 cpus web)"
systemctl daemon-reload
check "released, after a reload" "0-3 0-3 0-3" "$(eventually 0-3 cpus train) $(cpus web) $(cpus told)"
start light '{"holdfast.cpus": "1"}' crun
podman run -d --name heavy --cgroup-manager systemd --network none --annotation holdfast.cpus=1 --rootfs /root/web/rootfs /bin/busybox sleep 100000 >/dev/null
systemd-run --quiet --unit=dockerd dockerd --iptables=false --bridge=none --exec-opt native.cgroupdriver=systemd
for _ in $(seq 300); do docker info >/dev/null 2>&1 && break; sleep 0.5; done
tar -C /root/train/rootfs -c . | docker import - tiny >/dev/null
docker run -d --name dock --network none --label holdfast.cpus=1 tiny /bin/busybox sleep 100000 >/dev/null
of_podman() { podman inspect -f '{{.State.Pid}}' heavy; }
of_docker() { docker inspect -f '{{.State.Pid}}' dock; }
check "crun's" 1 "$(eventually 1 cpus light)"
check "podman's" 2 "$(eventually 2 cpus_of of_podman)"
check "docker's" 3 "$(eventually 3 cpus_of of_docker)"
check "the others have the rest" "0 0" "$(eventually 0 cpus web) $(eventually 0 cpus train)"
systemctl daemon-reload
sleep 1
check "after a reload" "1 2 3 0" "$(cpus light) $(cpus_of of_podman) $(cpus_of of_docker) $(cpus web)"
docker rm -f dock >/dev/null
check "the pool grows when one ends" "0,3" "$(eventually 0,3 cpus web)"
holdfast cpu status
[ $failures -eq 0 ] || journalctl -u holdfastd --no-pager | tail -n 40
echo "hf: $failures failures"
sync
TEST
size=$(($(du -sm "$root" | cut -f1) * 13 / 10 + 200))
mkfs.ext4 -q -d "$root" "$directory/disk" "${size}M"
kernel=$(ls "$root"/boot/vmlinuz-* | sort -V | tail -n 1)
timeout 1500 qemu-system-x86_64 -M q35 -cpu max -smp 4 -m 2G -nographic -no-reboot -kernel "$kernel" -initrd "${kernel/vmlinuz/initrd.img}" \
  -append "apparmor=0 root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service" -drive "file=$directory/disk,format=raw,if=virtio" </dev/null | tee "$directory/log"
grep -q '^hf: 0 failures' "$directory/log"
