# Several flows s -> r -> d over a bottleneck with RED in ns-2 2.35: reference numbers for `aqm.red`.
#
#   s --- 100 Mbit/s, 10 ms, large queues --- r --- rate, half of the remaining RTT, RED --- d
#
# Usage: ns red.tcl [key=value ...]    Prints one CSV line (see run_red.sh).
#
#   rate_kbit rtt_ms   bottleneck, and propagation delay of the round trip
#   flows              Sack1 flows; they start 0.1 s apart
#   min max            thresholds (packets)
#   weight max_p       weight of the average queue length; drop probability at max
#   gentle             1: above max the probability increases to 1 at twice max
#   limit              maximum number of waiting packets
#   seed duration warmup
#
# RED as defined by Floyd and Jacobson 1993: in packets, drops spread evenly (wait_ false), dropping the arriving packet
# (drop_tail_ true). Columns: drop ratio, mean number of waiting packets, utilisation, in [warmup, duration].

source [file join [file dirname [info script]] common.tcl]
args {
    rate_kbit 10000 rtt_ms 60 flows 5 min 5 max 15 weight 0.002 max_p 0.1 gentle 1 limit 200
    seed 1 duration 200 warmup 20
}
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set wait_ false
Queue/RED set drop_tail_ true
Queue/RED set adaptive_ 0
Queue/RED set mean_pktsize_ 500
Queue/RED set thresh_ $o(min)
Queue/RED set maxthresh_ $o(max)
Queue/RED set q_weight_ $o(weight)
Queue/RED set linterm_ [expr {1.0 / $o(max_p)}]
Queue/RED set gentle_ [expr {$o(gentle) ? "true" : "false"}]

new_simulator $o(seed)
set s [$ns node]; set r [$ns node]; set d [$ns node]
set far [expr {$o(rtt_ms) / 2.0 - 10}]
access_links $s $r 10
$ns simplex-link $r $d $o(rate_kbit)kb ${far}ms RED
$ns queue-limit $r $d $o(limit)
simplex_link $d $r 100000 $far 100000

for {set i 0} {$i < $o(flows)} {incr i} {
    set tcp [sender Sack1 10000]
    set sink [receiver Sack1 0]
    bulk_flow $s $d $tcp $sink [expr {0.1 * $i}]
}
set monitor [$ns monitor-queue $r $d [open /dev/null w]]
set waiting [$monitor get-pkts-integrator]
proc now {} {
    global ns monitor waiting
    $waiting newpoint [$ns now] [$monitor set pkts_]
    return [list [$monitor set parrivals_] [$monitor set pdrops_] [$waiting set sum_] \
        [$monitor set bdepartures_]]
}
$ns at $o(warmup) { set before [now] }
$ns at $o(duration) finish
proc finish {} {
    global o before
    set change {}
    foreach b $before a [now] { lappend change [expr {$a - $b}] }
    lassign $change arrivals drops queue bytes
    set span [expr {$o(duration) - $o(warmup)}]
    puts [join [list $o(rate_kbit) $o(rtt_ms) $o(flows) $o(min) $o(max) $o(weight) $o(max_p) $o(gentle) \
        $o(limit) $o(seed) $o(duration) $o(warmup) [format %.6f [expr {1.0 * $drops / $arrivals}]] \
        [format %.4f [expr {$queue / $span}]] \
        [format %.5f [expr {$bytes * 8.0 / $span / $o(rate_kbit) / 1000}]]] ,]
    exit 0
}
$ns run
