#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of a guest: Soft-RoCE over the virtual wire; node 1 measures, node 2 runs what mpirun sends it.
# Lines that begin with @@ are for the host; the out-box is a disk that holds one tar archive when the guest is off.
/bin/busybox --install -s /usr/bin
export PATH=/bin:/usr/bin HOME=/root
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# busybox's shell would take its own applets of these names
ip() { /bin/ip "$@"; }
tc() { /bin/tc "$@"; }
say() { echo "@@ $(cut -d' ' -f1 /proc/uptime) $*"; }
fail() {
	say "FAILED $*"
	poweroff -f
}
counters() {
	(cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . ./* | sed 's,^\./,,')
}
seconds() { cut -d. -f1 /proc/uptime; }
# until_true SECONDS COMMAND...: looks ten times a second
until_true() {
	end=$(($(seconds) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(seconds)" -lt "$end" ] || return 1
		sleep 0.1
	done
}
# tell COMMAND: has node 2's shell run it; false unless that said so
tell() { printf '%s && echo told\n' "$*" | nc -w 2 node2 7000 | grep -q told; }
hand_out() {
	counters >/out/counters.after
	tc -s qdisc show dev eth0 >/out/qdisc
	tar -C /out -cf /dev/vda . && sync
	say "handed out"
	poweroff -f
}

mount -t proc p /proc
mount -t sysfs s /sys
mount -t devtmpfs d /dev
mkdir -p /dev/shm /out
mount -t tmpfs t /dev/shm
ulimit -l unlimited
for word in $(cat /proc/cmdline); do
	case $word in node=*) N=${word#node=} ;; esac
done
say "kernel $(uname -r)"
while read -r m; do insmod "/mod/$m.ko" || fail "insmod $m"; done </mod/order

hostname "node$N"
ln -s busybox /bin/sh
echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd
# Addresses set aside for documentation (RFC 5737): nothing outside the two guests has them.
printf '127.0.0.1 localhost\n192.0.2.1 node1\n192.0.2.2 node2\n' >/etc/hosts
ip link set lo up
ip link set eth0 up
ip addr add "192.0.2.$N/24" dev eth0
until_true 20 grep -q up /sys/class/net/eth0/operstate || fail "no carrier on eth0"
rdma link add rxe0 type rxe netdev eth0 || fail "rdma link add"
until_true 20 test -e /dev/infiniband/uverbs0 || fail "no uverbs device"
nc -ll -p 7000 -e /bin/sh &
counters >/out/counters.before

if [ "$N" = 1 ]; then
	until_true 60 tell true || fail "node2 does not answer"
	say "wire up"
	. /measure
	until_true 15 tell 'touch /tmp/done' || say "node2 is gone"
else
	until_true 600 test -e /tmp/done
fi
hand_out
