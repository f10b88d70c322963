#!/bin/sh
# The first process of a host in namespaces: makes its root, installs Berth, becomes systemd.
#
#   unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child sh boot-systemd.sh ROOT RELEASE [bare]
#
# With "bare" Berth is not installed, and the host has a /usr and a dpkg of its own, into which packages can be.
# ROOT is an empty folder, RELEASE an unpacked release tarball. The host has this machine's /usr, read-only where it
# matters, and files of its own elsewhere. `containerd.service` is a runtime that executes /srv/add.sh once, at its
# start.
set -eu
root=$1
release=$2
bare=${3-}

mount --make-rprivate /
mount -t tmpfs -o mode=755 root "$root"
for folder in usr etc var/lib var/log var/tmp run tmp opt root proc sys dev srv/release home local; do mkdir -p "$root/$folder"; done
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
if [ -n "$bare" ]; then
    for folder in usr var/lib/dpkg; do
        mkdir -p "$root/$folder" "$root/.upper/$folder" "$root/.work/$folder"
        mount -t overlay -o "lowerdir=/$folder,upperdir=$root/.upper/$folder,workdir=$root/.work/$folder" host "$root/$folder"
    done
    # A container's image may forbid packages to start services.
    rm -f "$root/usr/sbin/policy-rc.d"
else
    mount --rbind /usr "$root/usr"
fi
mount --bind "$root/local" "$root/usr/local"
for name in passwd group nsswitch.conf os-release ld.so.cache ld.so.conf ld.so.conf.d alternatives dbus-1; do
    [ ! -e "/etc/$name" ] || cp -a "/etc/$name" "$root/etc/"
done
echo uninitialized >"$root/etc/machine-id"
units=$root/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
# What a machine needs and a host in namespaces cannot have.
for name in systemd-udevd systemd-logind getty@tty1 console-getty systemd-modules-load systemd-remount-fs systemd-sysctl systemd-update-utmp; do
    ln -s /dev/null "$units/$name.service"
done
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 pts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs run "$root/run"
mount --bind "$release" "$root/srv/release"
ip link set lo up

cat >"$root/srv/add.sh" <<'ADD'
#!/bin/sh
# add.sh NAME [UID]: an ADD of plugin berth for a new pod.
ip netns add "$1"
export CNI_COMMAND=ADD CNI_CONTAINERID="$1" CNI_NETNS="/run/netns/$1" CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin
export CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=$1;K8S_POD_UID=${2-uid-$1}"
echo '{"cniVersion": "1.0.0", "name": "lan", "type": "berth", "ipam": {"type": "berth"}}' | /opt/cni/bin/berth
ADD
cat >"$units/containerd.service" <<'UNIT'
[Unit]
After=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /srv/add.sh first
UNIT
if [ -z "$bare" ]; then
    chroot "$root" sh /srv/release/install.sh --root / >/dev/null
    cp "$root/etc/berth/pool.yaml.example" "$root/etc/berth/pools.d/lan.yaml"
fi
for name in containerd ${bare:-berth-agent}; do
    [ ! -e "$units/$name.service" ] || ln -s "../$name.service" "$units/multi-user.target.wants/$name.service"
done
# As on a machine, where systemd does it itself: the unit sees mounts that are made later.
mount --make-rshared "$root"
cd "$root"
exec env container=berth chroot "$root" /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=0
