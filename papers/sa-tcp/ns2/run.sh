#!/bin/sh
# Regenerates figure8.csv with ns-2 2.35 (`ns`): paper `sa-tcp`, Figure 8, by figure8.tcl. About two minutes.
#   SEEDS=10 ./run.sh   more seeds
#
# At 2000 kbit/s the transmission time of a packet (0.96 ms) and ns-2's clock tick (10 ms) are commensurable, so that timeouts and
# departures have a fixed phase; at 1987 kbit/s, a prime, they are not (conformance/ns2/run-meters.sh).
set -eu
cd "$(dirname "$0")"
seeds=${SEEDS:-5}
{
    echo congestion_control,aggregators,rate_kbit_per_s,rtt_ms,waiting,window,spread_s,seeds,offered_per_s,loss,loss_ci95,wait_ms,delivered_per_s,fairness_index,timeouts
    for rate in 2000 1987; do
        for congestion_control in Vegas Reno; do
            for n in 1 2 5 10 20 50 100 200 400; do
                s=1
                while [ "$s" -le "$seeds" ]; do
                    nice ns figure8.tcl congestion_control=$congestion_control aggregators=$n rate_kbit=$rate spread=1 seed=$s
                    s=$((s + 1))
                done | awk -F, '
                    # Quantiles of Student for 1, 2, ... degrees of freedom.
                    BEGIN { k = split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ") }
                    { n++; for (c = 9; c <= 14; c++) { sum[c] += $c }; loss[n] = $10
                      head = $1 "," $2 "," $3 "," $4 "," $5 "," $6 "," $7 }
                    END {
                        mean = sum[10] / n
                        for (i = 1; i <= n; i++) squares += (loss[i] - mean) ^ 2
                        ci = n > 1 ? (n - 1 in t ? t[n - 1] : 1.96) * sqrt(squares / (n - 1) / n) : 0
                        printf "%s,%d,%.1f,%.4f,%.4f,%.2f,%.1f,%.3f,%.0f\n", head, n, sum[9] / n, mean, ci, sum[11] / n,
                            sum[12] / n, sum[13] / n, sum[14] / n
                    }'
            done
        done
    done
} > figure8.csv.new
mv figure8.csv.new figure8.csv
