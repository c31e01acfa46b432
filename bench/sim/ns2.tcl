# The scenarios bulk.toml and flows.toml in ns-2 2.35: bulk flows s -> r over one link.
#
# Usage: ns ns2.tcl key=value ...
#   rate_mbit rtt_ms queue   the link, both directions; queue in packets, without the one in transmission
#   loss                     loss probability of a data packet after the link
#   flows spread             number of flows; each starts at a random time up to `spread` seconds
#   duration seed            simulated seconds; number of the random stream
#   scheduler                Calendar (ns-2's default), Heap, Splay, List
#   headers                  few: packets have space for IP, TCP and flags only; all: for every protocol
#                            of ns-2, which is its default
#
# Prints: data packets sent, payload acknowledged in bytes, retransmissions, timeouts.
#
# Traces and monitors are disabled, and with few headers packets have no space for their headers.

source [file join [file dirname [info script]] ../../conformance/ns2/common.tcl]
args {
    rate_mbit 3 rtt_ms 100 queue 100 loss 0 flows 1 spread 0 duration 100 seed 1 scheduler Calendar
    headers few
}

if {$o(headers) eq "few"} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}
set ns [new Simulator]
$ns use-scheduler $o(scheduler)
ns-random $o(seed)

set s [$ns node]
set r [$ns node]
foreach {from to} [list $s $r $r $s] {
    # ns-2 includes the packet in transmission.
    simplex_link $from $to [expr {1000 * $o(rate_mbit)}] [expr {$o(rtt_ms) / 2.0}] [expr {$o(queue) + 1}]
}
set random_stream [new_random_stream $o(seed)]
if {$o(loss) > 0} {
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $random_stream
    set losses [new ErrorModel]
    $losses unit pkt
    $losses set rate_ $o(loss)
    $losses ranvar $uniform
    $losses drop-target [new Agent/Null]
    $ns link-lossmodel $losses $s $r
}

# 1460 bytes and 40 of headers; an initial window of 2, a minimum timeout of 0.2 s and a clock of 10 ms are defaults.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 10000
for {set i 0} {$i < $o(flows)} {incr i} {
    set tcp [new Agent/TCP/Newreno]
    set sink [new Agent/TCPSink]
    bulk_flow $s $r $tcp $sink [expr {$o(spread) > 0 ? [$random_stream uniform 0 $o(spread)] : 0}]
    lappend senders $tcp
}

$ns at $o(duration) {
    set sent 0; set bytes 0; set retransmissions 0; set timeouts 0
    foreach tcp $senders {
        incr sent [$tcp set ndatapack_]
        incr retransmissions [$tcp set nrexmitpack_]
        incr timeouts [$tcp set nrexmit_]
        incr bytes [expr {1460 * [$tcp set ack_]}] ;# the sink's own bytes_ overflows at 2 GB
    }
    puts "$sent $bytes $retransmissions $timeouts"
    exit 0
}
$ns run
