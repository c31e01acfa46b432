#!/bin/sh
# Regenerates red.csv with ns-2 2.35 (`ns`), five seeds for each of three settings, about ten seconds.
set -eu
cd "$(dirname "$0")"
{
    echo rate_kbit_per_s,rtt_ms,flows,min_packets,max_packets,weight,max_probability,gentle,queue_packets,\
seed,duration_s,warmup_s,drop_ratio,queue_mean_packets,utilisation_ratio
    for seed in 1 2 3 4 5; do
        ns red.tcl seed=$seed < /dev/null
        ns red.tcl seed=$seed rate_kbit=1000 rtt_ms=100 flows=2 duration=1000 warmup=100 < /dev/null
        ns red.tcl seed=$seed rate_kbit=3000 rtt_ms=100 flows=20 min=5 max=30 gentle=0 < /dev/null
    done | sort -t, -k1,1n -k10,10n
} > red.csv.new
mv red.csv.new red.csv
