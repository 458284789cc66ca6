#!/usr/bin/env bash
# package_test.sh RELEASE [DIRECTORY]: installs, uses, upgrades, removes and purges the .deb in a clean root file system of
# bookworm, trixie (Debian 12, 13) or noble (Ubuntu 24.04): once without systemd, as in an image, and once with systemd as
# PID 1 and a running container that must never lose its device. Then the .rpm in an empty root. Needs root, mmdebstrap and
# the network. DIRECTORY: where the root file system is made, and stays; an existing one is used again. MIRROR: lines of a
# sources.list, where mmdebstrap's own choice does not fit. PACKAGES: a directory with both versions, instead of new ones.
set -euo pipefail

fail() { echo "package_test: $*" >&2; exit 1; }

step() { echo "== $*" >&2; }

expect() {  # WANTED COMMAND…
  local wanted=$1 got
  shift
  got=$("$@" 2>&1) || true
  [[ $got == $wanted ]] || fail "'$*' gave '$got' instead of '$wanted'"
}

install_package() {  # FILE
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" >/packages/apt.log 2>&1 ||
    { cat /packages/apt.log >&2; fail "could not install $1"; }
}

drop_package() {  # remove|purge
  DEBIAN_FRONTEND=noninteractive apt-get "$1" -y holdfast >/packages/apt.log 2>&1 ||
    { cat /packages/apt.log >&2; fail "could not $1 it"; }
}

# Every file but those of dpkg, apt and logs, which remember packages that were purged.
list_files() {
  find / -xdev \( -path /packages -o -path /before -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/lib/dpkg \
    -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}

check_programs() {
  expect "holdfast $1" holdfast --version
  expect 'config is fine*' holdfastd --check-config
  expect '*nvidia.com/gpu*' holdfast-kube --check-config
  for file in /usr/bin/holdfast-runtime /usr/bin/kubectl-holdfast /usr/share/man/man1/kubectl-holdfast.1.gz /usr/share/man/man1/holdfast.1.gz /usr/share/doc/holdfast/copyright /usr/share/zsh/vendor-completions/_holdfast; do
    [ -e "$file" ] || fail "$file is missing"
  done
  expect '*doctor*' bash -c '. /usr/share/bash-completion/completions/holdfast; COMP_WORDS=(holdfast do); COMP_CWORD=1; _holdfast; echo "${COMPREPLY[@]}"'
  expect 'text json yaml' bash -c '. /usr/share/bash-completion/completions/holdfast; COMP_WORDS=(holdfast doctor -o ""); COMP_CWORD=3; _holdfast; echo "${COMPREPLY[@]}"'
}

test_without_systemd() {  # VERSION NEXT_VERSION
  list_files >/packages/files.before
  step "install"
  install_package /packages/holdfast_"$1"-1_*.deb
  check_programs "$1"
  step "holdfast demo"
  if ! holdfast demo --once --seconds 2 >/packages/demo.log 2>&1; then
    cat /packages/demo.log >&2
    grep -q 'holdfastd runs on this host already' /packages/demo.log || fail "the demo failed"
    echo "   skipped: the machine has a guard of its own" >&2
  fi
  step "upgrade, with a changed configuration"
  echo '# a line of the administrator' >>/etc/holdfast/config.yaml
  install_package /packages/holdfast_"$2"-1_*.deb
  expect "*$2*" dpkg-query -W holdfast
  grep -q administrator /etc/holdfast/config.yaml || fail "the configuration was replaced"
  step "remove"
  mkdir -p /etc/docker
  echo '{}' >/etc/docker/daemon.json
  holdfast setup docker >/dev/null
  drop_package remove
  grep -q "holdfast setup docker --undo" /packages/apt.log || fail "no word about docker's configuration"
  rm -rf /etc/docker
  [ -e /etc/holdfast/config.yaml ] || fail "remove took the configuration"
  [ ! -e /usr/sbin/holdfastd ] || fail "remove left the programs"
  step "purge"
  drop_package purge
  list_files >/packages/files.after
  diff /packages/files.before /packages/files.after || fail "files are left (>), or missing (<)"
}

# A container below systemd whose device is in holdfast's ledger and not in its config: a daemon-reload takes it away.
start_container() {
  local rootfs=/packages/bundle/rootfs
  rm -rf /packages/bundle
  mkdir -p $rootfs/{bin,dev,proc}
  cp /bin/busybox $rootfs/bin/
  mknod -m 666 $rootfs/dev/fuse c 10 229
  # From its start to its end it opens the device, and adds a byte for each result.
  echo 'while :; do if true </dev/fuse; then echo >>/opened; else echo >>/refused; fi; done 2>/dev/null' >$rootfs/open
  cat >/packages/bundle/config.json <<'S'
{"ociVersion": "1.0.2", "process": {"cwd": "/", "args": ["/bin/busybox", "sh", "/open"], "user": {"uid": 0, "gid": 0}},
 "root": {"path": "rootfs"}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "linux": {"cgroupsPath": "system.slice:hf:train", "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}],
 "resources": {"devices": [{"allow": false, "access": "rwm"}]}}}
S
  (umask 077 && mkdir -p /run/holdfast/ledger && cat >/run/holdfast/ledger/train.json <<'S'
{"version": 1, "container": "train", "cgroup": "/system.slice/hf-train.scope", "nodes": [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "access": "rw"}]}
S
  )
  runc --systemd-cgroup run -d --bundle /packages/bundle train </dev/null >/packages/runc.log 2>&1
}

opened() { stat --format=%s /packages/bundle/rootfs/opened 2>/dev/null || echo 0; }
refused() { stat --format=%s /packages/bundle/rootfs/refused 2>/dev/null || echo 0; }

wait_until_it_opens() {
  local before end=$((SECONDS + 20))
  before=$(opened)
  while [ "$(opened)" -le "$((before + 10))" ]; do
    [ $SECONDS -lt $end ] || { journalctl -u holdfastd --no-pager | tail -n 20 >&2; fail "the container cannot open its device ($1)"; }
    sleep 0.1
  done
}

expect_no_loss() {  # WHEN
  wait_until_it_opens "$1"
  [ "$(refused)" = "$refused_before" ] || fail "$1: $(($(refused) - refused_before)) opens were refused"
}

test_with_systemd() {  # VERSION NEXT_VERSION
  start_container
  sleep 1
  [ "$(opened)" = 0 ] && [ "$(refused)" -gt 0 ] || fail "the container has its device before there is a guard"
  step "install: the guard starts and gives the container its device"
  install_package /packages/holdfast_"$1"-1_*.deb
  expect active systemctl is-active holdfastd.service
  expect enabled systemctl is-enabled holdfastd.service
  expect inactive systemctl is-active holdfast-kube.service
  expect disabled systemctl is-enabled holdfast-kube.service
  expect no systemctl show --property=NeedDaemonReload --value holdfastd.service
  wait_until_it_opens "after the installation"
  sleep 1
  refused_before=$(refused)
  systemctl daemon-reload
  expect_no_loss "daemon-reload"
  step "upgrade: the guard is restarted, after systemd has read a unit that was changed"
  local pid
  touch --date=2020-01-01 /usr/lib/systemd/system/holdfastd.service  # as if the older package had another unit
  systemctl daemon-reload
  mkdir /etc/systemd/system/holdfastd.service.d
  printf '[Service]\nEnvironment=CHANGED=yes\n' >/etc/systemd/system/holdfastd.service.d/changed.conf
  pid=$(systemctl show --property=MainPID --value holdfastd.service)
  install_package /packages/holdfast_"$2"-1_*.deb
  expect active systemctl is-active holdfastd.service
  [ "$(systemctl show --property=MainPID --value holdfastd.service)" != "$pid" ] || fail "the guard was not restarted"
  expect CHANGED=yes systemctl show --property=Environment --value holdfastd.service
  expect inactive systemctl is-active holdfast-kube.service
  expect_no_loss "upgrade"
  rm -r /etc/systemd/system/holdfastd.service.d
  step "remove and purge: the container keeps its device, also when systemd reads its units again"
  mkdir -p /etc/udev/rules.d
  holdfast setup node >/dev/null
  [ -e /etc/udev/rules.d/71-holdfast.rules ] || fail "setup node made no udev rule"
  drop_package remove
  ! grep "still has the runtime" /packages/apt.log || fail "no engine was set up"
  [ ! -e /etc/udev/rules.d/71-holdfast.rules ] || fail "remove left a udev rule that runs holdfast"
  expect inactive systemctl is-active holdfastd.service
  expect_no_loss "remove"
  drop_package purge
  systemctl daemon-reload
  expect_no_loss "purge"
  echo "   $(opened) opens; $refused_before were refused before the guard was there, none afterwards" >&2
  expect '' find / -xdev -path /packages -prune -o -path /proc -prune -o -name '*holdfast*' ! -path '/var/log/*' -print
  runc --systemd-cgroup delete -f train
  test_rpm_scripts
}

# There is no rpm here: its files are unpacked, and its scriptlets run as rpm would run them.
test_rpm_scripts() {
  local pid
  step "the scriptlets of the .rpm"
  (cd / && busybox cpio -idm <"/packages/rpm.cpio" 2>/dev/null)
  sh /packages/rpm.post 1
  expect active systemctl is-active holdfastd.service
  expect enabled systemctl is-enabled holdfastd.service
  expect disabled systemctl is-enabled holdfast-kube.service
  pid=$(systemctl show --property=MainPID --value holdfastd.service)
  sh /packages/rpm.post 2
  expect active systemctl is-active holdfastd.service
  [ "$(systemctl show --property=MainPID --value holdfastd.service)" != "$pid" ] || fail "the guard was not restarted"
  sh /packages/rpm.preun 1
  expect active systemctl is-active holdfastd.service
  sh /packages/rpm.preun 0
  expect inactive systemctl is-active holdfastd.service
  expect disabled systemctl is-enabled holdfastd.service
  rm -rf /etc/holdfast /var/lib/holdfast /usr/bin/holdfast* /usr/sbin/holdfast* /usr/lib/systemd/system/holdfast* /usr/share/doc/holdfast /usr/share/licenses \
    /usr/share/man/man?/holdfast* /usr/share/zsh/site-functions/_holdfast /usr/share/*/*/holdfast /usr/share/fish
}

if [ "${1:-}" = --inside ]; then
  "test_$2" "$3" "$4"
  exit 0
fi

cd "$(dirname "$0")/../.."
release=${1:?package_test.sh RELEASE [DIRECTORY]}
tools/prepare package
scratch=$(mktemp -d)
cgroup=
unshare_pid=
pid1=
cleanup() {
  [ -z "$unshare_pid" ] || kill -KILL "$unshare_pid" 2>/dev/null || true  # and with it systemd and all below
  if [ -n "$cgroup" ]; then
    for _ in $(seq 50); do
      find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [ -e "$cgroup" ] || break
      sleep 0.1
    done
  fi
  rm -rf --one-file-system "$scratch"
}
trap cleanup EXIT
version=$(sed -n 's/^project(holdfast VERSION \([^ ]*\) .*/\1/p' CMakeLists.txt)
next=$version+next
if [ -z "${PACKAGES:-}" ]; then
  step "packages of $next and $version"
  PACKAGES=$scratch/packages
  mkdir "$PACKAGES"
  PACKAGE_VERSION=$next tools/package
  cp build/release/packages/*.deb build/release/packages/*.rpm "$PACKAGES"
  tools/package
  cp build/release/packages/*.deb build/release/packages/*.rpm "$PACKAGES"
fi
if command -v lintian >/dev/null; then
  step "lintian"
  lintian --allow-root --fail-on error "$PACKAGES"/holdfast_"$version"-1_*.deb || fail "lintian reports errors"
else
  echo "   skipped: there is no lintian" >&2
fi
root=${2:-$scratch/root}
if [ ! -x "$root/bin/sh" ]; then
  step "a clean $release"
  mmdebstrap --quiet --variant=apt --components=main,universe --include=ca-certificates,systemd,dbus,runc,busybox-static "$release" "$root" ${MIRROR:+"$MIRROR"}
fi
rm -rf --one-file-system "$root/packages"
mkdir -p "$root/packages" "$root/before"
cp "$PACKAGES"/*.deb "$0" "$root/packages/"
rpm=$(ls "$PACKAGES"/holdfast-"$version"-1.*.rpm)
rpm2cpio "$rpm" >"$root/packages/rpm.cpio"
rpm --query --package --queryformat '%{POSTIN}' "$rpm" >"$root/packages/rpm.post"
rpm --query --package --queryformat '%{PREUN}' "$rpm" >"$root/packages/rpm.preun"

# Mounts go with the namespace. A chroot would not do: the demo starts containers, whose root is that of the mount namespace.
echo "== $release without systemd" >&2
unshare --mount --propagation private bash -euo pipefail -c '
  root=$1
  mount --bind "$root" "$root"
  for directory in proc sys dev; do mount --rbind "/$directory" "$root/$directory"; done
  mount -t tmpfs none "$root/run"
  cd "$root"
  pivot_root . before
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 bash /packages/package_test.sh --inside without_systemd "$2" "$3"
' run "$root" "$version" "$next"

step "$release with systemd"
v2=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)
cgroup=$(mktemp -d "$v2/hf-package-XXXXXX")
mkdir "$scratch/units"
printf '[Unit]\nDefaultDependencies=no\nRequires=dbus.service\nAfter=dbus.service\n' >"$scratch/units/holdfast-test.target"
cat >"$scratch/boot" <<'E2'
set -e
root=$1 units=$2
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys
mount -t bpf bpf sys/fs/bpf
mount -t cgroup2 cgroup2 sys/fs/cgroup
for directory in dev run; do mount -t tmpfs -o mode=755 tmpfs $directory; done
mkdir dev/pts dev/shm dev/char
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r name major minor <<E3
$node
E3
  mknod -m 666 "dev/$name" c "$major" "$minor"
done
mkdir -p run/systemd/system
cp "$units"/* run/systemd/system/
pivot_root . before
umount --lazy /before
exec env -i container=holdfast-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=holdfast-test.target
E2
# systemd and all below it end with this script.
setpriv --pdeathsig KILL unshare --pid --fork --kill-child bash -ec '
  echo 0 >"$1/cgroup.procs"
  exec unshare --mount --propagation private --cgroup --uts --ipc --net sh "$2" "$3" "$4"
' boot "$cgroup" "$scratch/boot" "$root" "$scratch/units" </dev/null >"$scratch/systemd.log" 2>&1 &
unshare_pid=$!
disown
inside() { nsenter -t "$pid1" -m -p -u -i -n -C -- env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
state=
for _ in $(seq 300); do
  [ -d "/proc/$unshare_pid" ] || break
  pid1=$(cat "/proc/$unshare_pid/task/$unshare_pid/children" 2>/dev/null | tr -d ' ')
  [ -z "$pid1" ] || state=$(inside systemctl is-system-running 2>/dev/null || true)
  # Degraded: it could not load kernel modules here, for example.
  case $state in running | degraded) break ;; esac
  sleep 0.1
done
case $state in running | degraded) ;; *) cat "$scratch/systemd.log" >&2; fail "systemd does not start ($state)" ;; esac
inside bash /packages/package_test.sh --inside with_systemd "$version" "$next"

step "the .rpm"
rpm_root=$scratch/rpm
mkdir "$rpm_root"
rpm --root "$rpm_root" --nodeps --noscripts --install "$rpm" 2>/dev/null  # Debian's warns of itself
expect "*holdfast-$version-1*" rpm --root "$rpm_root" --query holdfast
rpm --root "$rpm_root" --query --configfiles holdfast | grep -qx /etc/holdfast/config.yaml || fail "the configuration is no config file"
rpm --query --package --scripts "$rpm" | grep -q 'systemctl start holdfastd.service' || fail "no scriptlet starts the guard"
rpm --query --package --requires "$rpm" | grep -q '^libc.so.6' || fail "no dependency on the C library"
for file in usr/bin/holdfast usr/sbin/holdfastd usr/bin/holdfast-runtime usr/sbin/holdfast-kube usr/bin/kubectl-holdfast usr/lib/systemd/system/holdfastd.service; do
  [ -e "$rpm_root/$file" ] || fail "the .rpm lacks /$file"
done
expect "holdfast $version" "$rpm_root/usr/bin/holdfast" --version
rpm --root "$rpm_root" --noscripts --erase holdfast 2>/dev/null
left=$(find "$rpm_root" -name '*holdfast*')
[ -z "$left" ] || fail "the .rpm leaves $left"
echo "package_test: $release: all well" >&2
