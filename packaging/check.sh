#!/bin/sh
# Uses the package in an empty Debian system as an operator would: `cargo xtask dist --check` copies
# this file and the package there, and runs it as root in its own namespaces.
set -eu
cd /root
mount -t proc proc /proc
ip link set lo up

step() { echo; echo "== $*"; }

step "install"
apt-get install --yes --no-install-recommends /gridhaul.deb
gridhaul --version
gridhaul-relay --version
gridhaul-measure --version

step "first example, at most 5 s"
cp /usr/share/doc/gridhaul/examples/hybrid.toml .
start=$(date +%s%N)
gridhaul run hybrid.toml
took=$((($(date +%s%N) - start) / 1000000))
echo "$took ms"
[ "$took" -le 5000 ]
grep -q goodput results/hybrid/report.html

step "manual pages"
for page in gridhaul gridhaul-run gridhaul-relay gridhaul-relay-run gridhaul-measure-latency; do
    man --pager=cat "$page" > page
    head -4 page
    grep -q NAME page
done

step "a reading through collector and head"
mkdir relay
cd relay
cp /usr/share/doc/gridhaul/examples/relay/collector.toml /usr/share/doc/gridhaul/examples/relay/head.toml .
gridhaul relay check head.toml collector.toml
gridhaul-relay run head.toml &
head=$!
gridhaul-relay run collector.toml &
collector=$!
for _ in $(seq 50); do
    if gridhaul-relay status collector.toml > /dev/null 2>&1; then break; fi
    sleep 0.1
done
bash -c 'exec 3<> /dev/tcp/127.0.0.1/4059; echo 000417 >&3'
gridhaul-relay drain collector.toml
gridhaul-relay drain head.toml
cat messages.jsonl
[ -s messages.jsonl ]
kill "$head" "$collector"
wait
cd ..

step "units of systemd"
for unit in gridhaul-relay@collector.service gridhaul-relay-network@bridge.service; do
    systemd-analyze verify "$unit"
    systemd-analyze security --offline=yes --threshold=30 "$unit" | tail -1
done

step "a latency on the loopback device"
gridhaul measure latency udp --rate 100 --messages 200 > /dev/null

step "remove"
apt-get purge --yes gridhaul
[ ! -e /usr/bin/gridhaul ]
[ ! -e /usr/share/doc/gridhaul ]
echo "the package works"
