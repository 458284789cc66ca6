#!/usr/bin/env bash
# run_test.sh RELEASE [DIRECTORY]: types ./run in a clean root file system of bookworm, trixie (Debian 12, 13) or noble
# (Ubuntu 24.04), as a new user would: the packages are installed, holdfast is built, the demo runs. Then the lines of
# docs/INSTALL.md install it from source. Needs root, mmdebstrap and the network. DIRECTORY: where the root file system is
# made, and stays; an existing one is used again.
# MIRROR: lines of a sources.list, where mmdebstrap's own choice does not fit.
set -euo pipefail
cd "$(dirname "$0")/../.."
release=${1:?run_test.sh RELEASE [DIRECTORY]}
root=${2:-}
if [ -z "$root" ]; then
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
fi
if [ ! -x "$root/bin/sh" ]; then
  mmdebstrap --variant=apt --components=main,universe --include=ca-certificates "$release" "$root" ${MIRROR:+"$MIRROR"}
fi
rm -rf "$root/src/holdfast"
mkdir -p "$root/src/holdfast"
git ls-files -z | tar --null -T - -c | tar -x -C "$root/src/holdfast"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# A mount namespace of its own: nothing stays mounted, also when it fails. A chroot would not do: the demo starts
# containers, whose root is that of the mount namespace.
exec unshare --mount --propagation private bash -euo pipefail -c '
  root=$1
  mount --bind "$root" "$root"
  for directory in proc sys dev; do mount --rbind "/$directory" "$root/$directory"; done
  mount -t tmpfs none "$root/run"
  mkdir -p "$root/before"
  cd "$root"
  pivot_root . before
  cd /src/holdfast
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" bash -euxo pipefail -c "
    ./run
    $(grep -m1 "^tools/build release" docs/INSTALL.md)
    $(grep -m1 "^cmake --install" docs/INSTALL.md)
    holdfast --version
    kubectl-holdfast --version
  "
' run "$root"
