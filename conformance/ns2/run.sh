#!/bin/sh
# Regenerates grid.csv with ns-2 2.35 (`ns`).
#   ./run.sh            37 points x 5 algorithms, 40 seeds, about eight minutes
#   ./run.sh --quick    prints 7 points x 5 algorithms with 3 seeds, does not change grid.csv, under 20 s
#   SEEDS=99 ./run.sh   more seeds for the points with random loss (the others run once)
#
# 36 points are all combinations of rate x RTT x loss; buffer (10, 100 packets) and delayed ack (0, 100 ms) alternate, so
# that every pair of values of any two settings occurs. Point names:
# r<kbit/s>-d<RTT ms>-l<loss>-b<buffer>-a<delack ms>.
# goodput in kbit/s; retransmit_ratio = retransmissions / data packets sent, both from the start;
# ci95 = 1.96 standard errors; timeouts and queue drops are means per run, from the start.
set -eu
cd "$(dirname "$0")"
mode=${1:-full}
seeds=${SEEDS:-40}
[ "$mode" = --quick ] && seeds=${SEEDS:-3}

points() {
    i=0
    for rate in 64 500 3000; do
        j=0
        for rtt in 20 100 700; do
            k=0
            for loss in 0 0.001 0.01 0.05; do
                buffer=$(((i + j + k) % 2 ? 100 : 10))
                delack=$(((i + j / 2 + k / 2) % 2 ? 100 : 0))
                echo "$rate $rtt $loss $buffer $delack"
                k=$((k + 1))
            done
            j=$((j + 1))
        done
        i=$((i + 1))
    done
    # The end of slow start on a long path. Segments arrive exactly when the delayed-ack timer
    # expires.
    echo 4180 343 0 15 40
}
[ "$mode" = --quick ] && pick='NR % 7 == 1 || NR == 37' || pick=1

grid() {
    echo point,congestion_control,rate_kbit_per_s,rtt_ms,loss,buffer_packets,delack_ms,duration_s,warmup_s,seeds,\
goodput_mean,goodput_ci95,retransmit_ratio_mean,timeouts_mean,queue_drops_mean
    points | awk "$pick" | while read -r rate rtt loss buffer delack; do
        case $rate in
            64) duration=5000 ;;
            500) duration=2000 ;;
            4180) duration=120 ;;
            *) duration=1000 ;;
        esac
        n=$seeds
        [ "$loss" = 0 ] && n=1
        for congestion_control in Tahoe Reno Newreno Sack1 Vegas; do
            s=1
            while [ "$s" -le "$n" ]; do
                nice ns dumbbell.tcl congestion_control=$congestion_control rate_kbit="$rate" rtt_ms="$rtt" loss="$loss" \
                    buffer="$buffer" delack_ms="$delack" seed=$s \
                    duration=$duration warmup=$((duration / 10)) < /dev/null
                s=$((s + 1))
            done | awk -F, -v OFS=, '
                { n++; g[n] = $11; m += $11; ratio += $13 / $12; to += $14; drops += $15 }
                END {
                    m /= n
                    for (i = 1; i <= n; i++) q += (g[i] - m) ^ 2
                    if (n > 1) ci = sprintf("%.3f", 1.96 * sqrt(q / (n - 1) / n))
                    print "r" $2 "-d" $3 "-l" $4 "-b" $5 "-a" $6, $1, $2, $3, $4, $5, $6, $9, $10, n, \
                        sprintf("%.3f", m), ci, sprintf("%.5f", ratio / n), to / n, drops / n
                }'
        done
    done
}

if [ "$mode" = --quick ]; then
    grid
else
    grid > grid.csv.new
    mv grid.csv.new grid.csv
fi
