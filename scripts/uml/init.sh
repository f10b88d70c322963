#!/bin/sh
# The first process of a User-Mode Linux: makes the guest ready, runs one command, tells how it ended, switches the
# guest off.
#
#   init.sh DIRECTORY EXIT_CODE ROOT COMMAND [ARGUMENT...]
#
# The guest's root file system is the machine's own, read-only. It can write to /run and /dev, which are in its
# memory, and to DIRECTORY, which is the machine's folder of that name. In it is EXIT_CODE, the file that the
# command's exit code is written to when it has ended. ROOT is the repository. Called by the kernel that machine.ts
# starts.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
directory=$1
exit_code=$2
root=$3
shift 3

# The first process must not end: the kernel would panic. `o` is off.
trap 'sync; echo o >/proc/sysrq-trigger; while :; do sleep 1; done' EXIT

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount -t hostfs -o "$directory" none "$directory"
mkdir -p /run/tmp /run/home /run/modules/lib/modules
chmod 1777 /run/tmp

# The package keeps its modules where modprobe does not look; the kernel itself asks for modules by this program, too.
release=$(uname -r)
ln -s "/usr/lib/uml/modules/$release" "/run/modules/lib/modules/$release"
printf '#!/bin/sh\nexec modprobe -d /run/modules "$@"\n' >/run/modprobe
chmod +x /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
for module in ipv6 veth bridge macvlan dummy 8021q ipvlan vrf; do /run/modprobe "$module"; done
/run/modprobe bonding max_bonds=0
ip link set lo up

cd "$root"
export PATH="$root/node_modules/.bin:$PATH" HOME=/run/home TMPDIR=/run/tmp NO_COLOR=1
echo "berth-uml: ready"
# The console is a terminal; a pipe is none, and programs then print plain lines.
{
    code=0
    "$@" </dev/null || code=$?
    echo "$code" >"$exit_code"
} 2>&1 | cat
echo "berth-uml: done"
