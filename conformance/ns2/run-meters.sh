#!/bin/sh
# Regenerates meters.csv with ns-2 2.35 (`ns`): meters.tcl at each of the points below.
#   ./run-meters.sh            5 seeds each, two runs at a time, about half an hour
#   SEEDS=20 ./run-meters.sh   more seeds
#   ./run-meters.sh PATTERN    prints the points with a matching name; does not change meters.csv
#
# The rates are primes, so that the transmission time of a packet and ns-2's clock tick of 10 ms have no common multiple in a
# run. At 2000 kbit/s they have: timeouts and packets are then synchronised, and the losses depend on their phase. From 2000
# to 1987 kbit/s the drops of 100 flows of window 20 (Poisson, 100 ms, limit 41) increase from 35,000 to 52,200 in 240 s.
#
# Point names: <congestion_control>-n<meters>-w<window>-x<load over capacity>-r<kbit/s>-d<RTT ms>-b<buffer>-<load>.
# The capacity is in packets of 240 bytes and determines `every`. Columns are means and half widths of 95 % confidence
# intervals (Student) over the seeds. Timeouts of Vegas are omitted, because they include those of idle connections.
set -eu
cd "$(dirname "$0")"
pattern=${1:-}
export SEEDS="${SEEDS:-5}"

# VARIANT METERS WINDOW LOAD_OVER_CAPACITY KBIT RTT BUFFER LOAD DURATION
points() {
    # The window of the paper's meters. NewReno equals Reno here: two packets cannot cause three duplicates.
    for congestion_control in Reno Vegas; do
        echo $congestion_control 100 2 0.9 1987 50 101 periodic 300
        echo $congestion_control 100 2 5 997 100 101 periodic 300
        echo $congestion_control 1000 2 0.5 1987 50 41 on_off 300
        echo $congestion_control 1000 2 1.1 997 100 101 periodic 300
        echo $congestion_control 1000 2 2 1987 100 41 poisson 300
        echo $congestion_control 5000 2 2 997 100 41 poisson 180
        echo $congestion_control 10000 2 5 1987 100 101 poisson 180
    done
    for congestion_control in Reno Newreno Vegas; do
        echo $congestion_control 100 20 1.1 997 100 101 poisson 300
        echo $congestion_control 100 20 2 1987 100 41 periodic 300
        echo $congestion_control 1000 20 2 997 100 101 poisson 300
    done
    # 20.83 packets per 10 ms clock tick: see `phase` in conformance/src/ns2_meters.rs.
    echo Reno 100 20 2 2000 100 41 periodic 300
}

# one POINT: prints the CSV line of a point.
one() {
    set -- $1
    every=$(awk -v n="$2" -v x="$4" -v r="$5" 'BEGIN { printf "%.6f", n / (x * r * 1000 / 1920) }')
    name=$(echo "$1" | tr A-Z a-z)-n$2-w$3-x$4-r$5-d$6-b$7-$8
    s=1
    while [ "$s" -le "$SEEDS" ]; do
        ns meters.tcl congestion_control="$1" meters="$2" window="$3" rate_kbit="$5" rtt_ms="$6" buffer="$7" \
            load="$8" every="$every" duration="$9" seed=$s < /dev/null
        s=$((s + 1))
    done | awk -F, -v OFS=, -v name="$name" '
        # Quantiles of Student for 1, 2, ... degrees of freedom; above, the quantile of the normal distribution.
        BEGIN { k = split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ") }
        {
            n++
            v[1, n] = $13; v[2, n] = $14 / $13; v[3, n] = $16
            v[4, n] = $17 * 1600 / ($11 - $12) / 1000; v[5, n] = $18; v[6, n] = $19
        }
        END {
            line = name OFS $1 OFS $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7 OFS $8 OFS $9 OFS $11 OFS $12 OFS n
            for (c = 1; c <= 6; c++) {
                m = 0; q = 0
                for (i = 1; i <= n; i++) m += v[c, i] / n
                for (i = 1; i <= n; i++) q += (v[c, i] - m) ^ 2
                # Values that differ by rounding errors only have no interval.
                ci = n > 1 && q > 1e-12 * m * m ? (n - 1 in t ? t[n - 1] : 1.96) * sqrt(q / (n - 1) / n) : 0
                if (c == 6 && $1 == "Vegas") line = line OFS OFS
                else line = line OFS sprintf("%.6g", m) OFS sprintf("%.3g", ci)
            }
            print line
        }'
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit
fi
grid() {
    echo point,congestion_control,meters,window,rate_kbit_per_s,rtt_ms,buffer_packets,load,every_s,spread_s,duration_s,\
warmup_s,seeds,offered_mean,offered_ci95,loss_mean,loss_ci95,wait_ms_mean,wait_ms_ci95,\
goodput_kbit_per_s_mean,goodput_kbit_per_s_ci95,retransmissions_mean,retransmissions_ci95,timeouts_mean,timeouts_ci95
    points | xargs -P 2 -d '\n' -n 1 ./run-meters.sh --one | sort -t , -k 4,4n -k 3,3n -k 1,1
}
if [ -n "$pattern" ]; then
    points | xargs -P 2 -d '\n' -n 1 ./run-meters.sh --one | grep -e "$pattern"
else
    grid > meters.csv.new
    mv meters.csv.new meters.csv
fi
