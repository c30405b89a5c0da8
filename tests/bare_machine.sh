#!/usr/bin/env bash
# bare_machine.sh bookworm|trixie: what README.md says first, by root on a machine that has just been installed. Debian is put into a
# temporary folder ($TMPDIR, 5 GB), this checkout's last commit is cloned below its root's home, and there the commands of README.md's
# first block run, one after the other. Prints how long each took and how much disk. Packages come from where this machine gets its
# own, or from $DEBIAN_MIRROR. Exit codes: 0, 1 a command failed, 2 this cannot be tried here.
set -euo pipefail
root=$(readlink -f "${BASH_SOURCE[0]%/*}/..")
source "$root/cmake/ensure.sh"

case ${1-} in
  bookworm | trixie) release=$1 ;;
  *) say "bare_machine.sh: expected bookworm or trixie"; exit 2 ;;
esac
((EUID == 0)) || { say "bare_machine.sh: needs root, who may mount and change roots"; exit 2; }
# What is mounted below is seen by this script alone, and gone with it however it ends.
[[ -v STEPSIM_MOUNTS ]] || STEPSIM_MOUNTS=own exec unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$@"
ensure_packages debootstrap git

mapfile -t commands < <(awk '/^```/ { if (inside) exit; inside = 1; next } inside { sub(/ +#.*/, ""); print }' "$root/README.md")
((${#commands[@]})) || { say "README.md shows no command"; exit 2; }
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)}

bare=$(mktemp -d)
job=
set -m  # a command is a group of processes, which can be ended as one
finish() {
  local code=$? process
  trap '' EXIT INT TERM HUP
  [[ -z $job ]] || kill -KILL -- "-$job" 2>/dev/null || true
  for process in /proc/[0-9]*; do  # whatever still runs in there
    [[ $(readlink "$process/root") != "$bare" ]] || kill -KILL "${process#/proc/}" || true
  done 2>/dev/null
  wait
  umount --recursive --lazy "$bare" 2>/dev/null || true
  rm -rf --one-file-system "$bare"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
chmod 755 "$bare"  # apt reads lists as a user of its own
mount --bind "$bare" "$bare"  # what is mounted in it goes together

# step NAME COMMAND...: in the background, because there a trap need not wait for it.
step() {
  local name=$1 begun=$SECONDS code=0 before after
  shift
  before=$(du -smx "$bare" | cut -f 1)
  "$@" </dev/null &
  job=$!
  wait "$job" || code=$?
  job=
  after=$(du -smx "$bare" | cut -f 1)
  printf '%s: %s: %d min %02d s, %d MB of disk, exit code %d\n' "$release" "$name" $(((SECONDS - begun) / 60)) \
    $(((SECONDS - begun) % 60)) $((after - before)) "$code"
  ((code == 0)) || exit 1
}
install() {
  local more=()
  [[ $mirror != https:* ]] || more=(--include=ca-certificates)
  nice debootstrap --variant=minbase "${more[@]}" "$release" "$bare" "$mirror" >"$bare/install.log" 2>&1 ||
    { tail "$bare/install.log"; return 1; }
}
inside() {
  nice chroot "$bare" env -i HOME=/root USER=root TERM=dumb LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy+http_proxy="$http_proxy"} ${https_proxy+https_proxy="$https_proxy"} bash -c "cd '/root/a checkout' && $1"
}

step debootstrap install
# The network is reached as from here.
apt-config dump | grep -iE '^Acquire::[^ ]*(proxy|check-)' >"$bare/etc/apt/apt.conf.d/as-outside" || true
cp /etc/resolv.conf /etc/hosts "$bare/etc"
mount -t proc proc "$bare/proc"
mount --rbind /dev "$bare/dev"
chmod 700 "$bare/root"
git clone -q --depth 1 "file://$root" "$bare/root/a checkout"
for command in "${commands[@]}"; do step "$command" inside "$command"; done
