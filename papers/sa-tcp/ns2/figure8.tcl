# Paper `sa-tcp`, Figure 8, in ns-2 2.35: N aggregators that always have data share the path to the server.
#
#   s --- rate, half of the RTT, queue --- d        all aggregators at s, the server at d
#
# Each aggregator is one FTP connection for the whole run. The reverse path has 1 Gbit/s and never overflows.
# Usage: ns figure8.tcl [key=value ...]    Prints one CSV line.
#
#   congestion_control   Vegas | Reno
#   aggregators          number of connections
#   rate_kbit            rate of the path (kbit/s)
#   rtt_ms               propagation delay of the round trip
#   waiting              packets that can wait; the limit of ns-2 also counts the packet in transmission
#   window               W_M, maximum window in packets
#   spread               connections start at random times from 0 to this value (s)
#   seed                 number of the random stream
#   duration warmup      seconds; everything is counted in [warmup, duration]
#
# Columns: the parameters, packets offered to the path per second, loss ratio, mean queueing time (ms), delivered packets per
# second, fairness index of the delivered packets, timeouts.

source [file join [file dirname [info script]] ../../../conformance/ns2/common.tcl]
args {
    congestion_control Vegas aggregators 10 rate_kbit 2000 rtt_ms 50 waiting 40 window 64 spread 0 seed 1
    duration 220 warmup 20
}
new_simulator $o(seed)
$ns use-scheduler Heap
set random_stream [new_random_stream $o(seed)]

set s [$ns node]; set d [$ns node]
simplex_link $s $d $o(rate_kbit) [expr {$o(rtt_ms) / 2.0}] [expr {$o(waiting) + 1}]
simplex_link $d $s 1000000 [expr {$o(rtt_ms) / 2.0}] 1000000

# Vegas adds no header of its own (conformance/ns2/README.md).
Agent/TCP set packetSize_ [expr {$o(congestion_control) eq "Vegas" ? 240 : 200}]
Agent/TCP set window_ $o(window)
Agent/TCP/Vegas set v_alpha_ 1
Agent/TCP/Vegas set v_beta_ 3
for {set i 0} {$i < $o(aggregators)} {incr i} {
    set tcp [new Agent/TCP/$o(congestion_control)]
    set sink [new Agent/TCPSink]
    bulk_flow $s $d $tcp $sink [expr {$o(spread) > 0 ? [$random_stream uniform 0 $o(spread)] : 0}]
    lappend tcps $tcp
}

set queue [$ns monitor-queue $s $d [open /dev/null w]]
set waiting [$queue get-pkts-integrator]
proc counts {} {
    global ns tcps queue waiting
    $waiting newpoint [$ns now] [$waiting set lasty_]
    set acked {}; set timeouts 0
    foreach tcp $tcps {
        lappend acked [$tcp set ack_]
        incr timeouts [$tcp set nrexmit_]
    }
    list [$queue set parrivals_] [$queue set pdrops_] [$waiting set sum_] $timeouts $acked
}
$ns at $o(warmup) { set before [counts] }
$ns at $o(duration) finish
proc finish {} {
    global o before
    lassign [counts] offered dropped waited timeouts acked
    lassign $before offered_0 dropped_0 waited_0 timeouts_0 acked_0
    set time [expr {double($o(duration) - $o(warmup))}]
    set offered [expr {$offered - $offered_0}]
    set dropped [expr {$dropped - $dropped_0}]
    set sum 0.0; set squares 0.0
    foreach now $acked then $acked_0 {
        set delivered [expr {$now - $then}]
        set sum [expr {$sum + $delivered}]
        set squares [expr {$squares + double($delivered) * $delivered}]
    }
    puts [join [list $o(congestion_control) $o(aggregators) $o(rate_kbit) $o(rtt_ms) $o(waiting) $o(window) $o(spread) \
        $o(seed) [format %.3f [expr {$offered / $time}]] [format %.5f [expr {double($dropped) / max(1, $offered)}]] \
        [format %.3f [expr {1e3 * ($waited - $waited_0) / max(1, $offered - $dropped)}]] \
        [format %.3f [expr {$sum / $time}]] \
        [format %.4f [expr {$squares > 0 ? $sum * $sum / ($squares * $o(aggregators)) : 0}]] \
        [expr {$timeouts - $timeouts_0}]] ,]
    exit 0
}
$ns run
