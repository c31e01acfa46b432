#!/bin/sh
# Regenerates ns2.csv with ns-2 2.35 (`ns`): paper `hybrid`, Tables 2-5 and the 626 kbit/s of Section 3.2.
#   ./run.sh            all cells, about four minutes
#   ./run.sh --quick    prints only the deterministic cells (Tables 2, 3 and Section 3.2), does not change ns2.csv
#   SEEDS=100 ./run.sh  more seeds
#
# Lossless cells: 1000 s from the first packet, start-up included. This reproduces every printed digit of Table 3 (the paper
# truncates decimals instead of rounding). Lossy cells: 5000 s from the first packet; the paper's 749 kbit/s without loss
# require that Table 4 ran longer than 2800 s. Each of its lossy values is a single random run. minrto_ 1.0 was the default of
# ns-2 when the paper was written (0.2 since October 2004); the cells named -rto02 have the current default, with which delayed
# acks and ack loss cause spurious timeouts.
set -eu
cd "$(dirname "$0")"
seeds=${SEEDS:-40}
mode=${1:-full}

# cell TABLE ID ROW SEEDS PAPER_DOWN PAPER_UP key=value...
cell() {
    table=$1 id=$2 row=$3 n=$4 down=$5 up=$6
    shift 6
    s=1
    while [ "$s" -le "$n" ]; do
        nice ns hybrid.tcl seed="$s" warmup=0 "$@"
        s=$((s + 1))
    done | awk -F, -v id="$id" -v t="$table" -v row="$row" -v down="$down" -v up="$up" '
        { n++; d[n] = $8; u[n] = $9 }
        function line(what, paper, x, name,   i, m, q, ci) {
            for (i = 1; i <= n; i++) m += x[i] / n
            for (i = 1; i <= n; i++) q += (x[i] - m) ^ 2
            if (n > 1) ci = sprintf("%.3f", 1.96 * sqrt(q / (n - 1) / n))
            printf "%s-%s,%s,%s,%s,kbit_per_s,%s,%.3f,%s,%d\n", id, name, t, row, what, paper, m, ci, n
        }
        END { line("dvbt_throughput", down, d, "down"); line("gprs_throughput", up, u, "up") }'
}

lossless() {
    d=duration=1000
    cell 2 t2-delack0  "no delayed ack"    1  750 19.9 $d dvbt_ms=1 gprs_ms=1
    cell 2 t2-delack5  "delayed ack 5 ms"  1 1200 19.9 $d dvbt_ms=1 gprs_ms=1 delack_ms=5
    cell 2 t2-delack20 "delayed ack 20 ms" 1 1500 19.9 $d dvbt_ms=1 gprs_ms=1 delack_ms=20
    cell 3 t3-delack0  "no delayed ack"    1 747.2 19.9 $d
    cell 3 t3-delack5  "delayed ack 5 ms"  1 757.0 12.5 $d delack_ms=5
    cell 3 t3-delack10 "delayed ack 10 ms" 1 752.3 12.4 $d delack_ms=10
    cell 3 t3-delack20 "delayed ack 20 ms" 1 761.1 10.1 $d delack_ms=20
    cell 3 t3-window100-delack20 "window 100 and delayed ack 20 ms" 1 1490 "" $d delack_ms=20 window=100
    # Section 3.2: 626 is reproduced with a window of 40, without the extra loss link and without the start-up.
    for g in 50 375 650 700; do
        cell 3.2 s32-gprs$g "GPRS $g ms and DVB-T $((750 - g)) ms" 1 626 "" \
            duration=1000 warmup=100 window=40 gprs_ms=$g dvbt_ms=$((750 - g)) clink_kbit=1000000 clink_ms=0
    done
}

lossy() { # $1 = suffix of the id, the rest = settings
    x=$1; shift
    set -- "$@" duration=5000
    for v in 0 1 2; do
        cell 4 t4-up$v-down0$x "GPRS $v % and DVB-T 0 %" "$seeds" 749 "" up_loss=0.0$v "$@"
    done
    cell 4 t4-up0-down0.01$x "GPRS 0 % and DVB-T 0.01 %" "$seeds" 707.4 "" down_loss=0.0001 "$@"
    cell 4 t4-up0-down0.1$x  "GPRS 0 % and DVB-T 0.1 %"  "$seeds" 488.4 "" down_loss=0.001 "$@"
    cell 4 t4-up0-down1$x    "GPRS 0 % and DVB-T 1 %"    "$seeds" 142.8 "" down_loss=0.01 "$@"
    cell 4 t4-up2-down0.01$x "GPRS 2 % and DVB-T 0.01 %" "$seeds" 704.6 "" down_loss=0.0001 up_loss=0.02 "$@"
    set -- "$@" down_loss=0.0001 up_loss=0.02
    cell 5 t5-tahoe$x          "Tahoe"               "$seeds" 704.6 18.7 congestion_control=Tahoe "$@"
    cell 5 t5-tahoe-delack$x   "Tahoe with DelAck"   "$seeds" 693.6 9.7  congestion_control=Tahoe delack_ms=20 "$@"
    cell 5 t5-reno$x           "Reno"                "$seeds" 718.7 19.1 congestion_control=Reno "$@"
    cell 5 t5-reno-delack$x    "Reno with DelAck"    "$seeds" 710.2 9.9  congestion_control=Reno delack_ms=20 "$@"
    cell 5 t5-newreno$x        "NewReno"             "$seeds" 718.7 19.1 congestion_control=Newreno "$@"
    cell 5 t5-newreno-delack$x "NewReno with DelAck" "$seeds" 710.2 9.9  congestion_control=Newreno delack_ms=20 "$@"
    cell 5 t5-sack$x           "Sack"                "$seeds" 717.2 19.1 congestion_control=Sack1 "$@"
    cell 5 t5-sack-delack$x    "Sack with DelAck"    "$seeds" 700.6 9.7  congestion_control=Sack1 delack_ms=20 "$@"
}

echo_header() { echo cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds; }
if [ "$mode" = --quick ]; then
    echo_header
    lossless
else
    { echo_header; lossless; lossy "" tcp.minrto_=1.0; lossy -rto02 tcp.minrto_=0.2; } > ns2.csv.new
    mv ns2.csv.new ns2.csv
fi
