#!/bin/sh
# Regenerates pairs.csv with ns-2 2.35 (`ns`): two flows, the second of which starts while the first fills the queue.
#   ./run-pairs.sh            5 seeds each, under a minute
#   SEEDS=20 ./run-pairs.sh   more seeds
#
# The seed only shifts the clock ticks. It decides which packets are lost where losses and timeouts are close in time, so
# that a pair has a range of goodputs: their minimum and maximum over the seeds. Goodputs are in kbit/s, between 20 and 300 s.
set -eu
cd "$(dirname "$0")"
seeds=${SEEDS:-5}

pairs() {
    # Vegas, second flow into a queue that is not empty: the second round-trip time may be shorter than the first.
    for start in 0.1 0.25 0.37 0.5 0.8 1.3 2.1 3.3 4.7 6.1; do
        echo Vegas Vegas 3499 2.0 46.3 27.8 100 $start
    done
    # 16 random networks with a SACK flow first and a Vegas flow second.
    while read -r network; do
        echo Sack1 Vegas 554 "$network"
    done <<END
37.8 44.8 48.7 100 0.1
50.6 46.8 18.7 10 0.8
7.7 28.7 18.6 50 0.37
34.9 1.8 16.9 20 0.8
55.1 46.2 13.8 10 0.8
37.5 27.2 12.3 10 1.3
46.6 57.6 14.1 15 2.1
19.5 12.7 53.2 100 1.3
11.7 58.1 15.8 30 2.1
2.3 25.5 56.5 20 0.37
20.6 49.2 37.2 50 3.3
4.9 22.0 21.8 100 3.3
11.9 28.9 14.7 20 0.1
57.0 22.1 27.2 50 4.7
22.6 35.1 5.5 10 0.8
37.8 57.3 11.5 15 6.1
END
}

{
    echo first,second,rate_kbit_per_s,access1_ms,access2_ms,bottleneck_ms,buffer_packets,start2_s,seeds,\
goodput1_min,goodput1_max,goodput2_min,goodput2_max
    pairs | while read -r first second rate access1 access2 bottleneck buffer start; do
        s=1
        while [ "$s" -le "$seeds" ]; do
            nice ns pair.tcl first="$first" second="$second" rate_kbit="$rate" access1_ms="$access1" \
                access2_ms="$access2" bottleneck_ms="$bottleneck" buffer="$buffer" start2="$start" seed="$s" < /dev/null
            s=$((s + 1))
        done | awk -F, -v OFS=, -v pair="$first,$second,$rate,$access1,$access2,$bottleneck,$buffer,$start,$seeds" '
            NR == 1 { min1 = max1 = $1; min2 = max2 = $2 }
            { if ($1 < min1) min1 = $1; if ($1 > max1) max1 = $1; if ($2 < min2) min2 = $2; if ($2 > max2) max2 = $2 }
            END { print pair, min1, max1, min2, max2 }'
    done
} > pairs.csv.new
mv pairs.csv.new pairs.csv
