# Packets that ns-2 2.35 sends when the listed packets are lost: many cases in one process, each on separate nodes.
#
#   s --- 100 Mbit/s, 0.1 ms --- r --- rate, delay, queue, losses --- d
#
# Usage: ns drops.tcl < CASES      a case on each line, its cells separated by commas:
#
#   name          must be unique
#   congestion_control       Tahoe | Reno | Newreno | Sack1 | Vegas
#   rate_kbit     rate of the bottleneck, both directions (kbit/s)
#   delay_ms      delay of the bottleneck, one way
#   limit         limit_ of the bottleneck's queue in packets, the one in transmission included
#   window        window_ in packets
#   size          packetSize_: payload of a data packet (bytes); for Vegas the whole packet
#   delack_ms     delayed-ACK timer; 0: an ACK for every packet
#   singledup     singledup_: limited transmit
#   minrto_s rtxinit_s   minrto_ and rtxcur_init_
#   duration_s    the longest duration applies to all cases
#   drops         packets to lose, separated by blanks: ordinal numbers of the packets reaching r, from 0,
#                 retransmissions counted
#
# Prints CSV: boot,NAME,SECONDS for the phase of each sender's clock, then NAME,SECONDS,SEQNO for each packet that
# leaves a sender. Seqno 0 is the 40-byte packet in place of the SYN.

set cells {
    name congestion_control rate_kbit delay_ms limit window size delack_ms singledup minrto_s rtxinit_s duration_s drops
}

source [file join [file dirname [info script]] common.tcl]
new_simulator 1

set cases {}
while {[gets stdin line] >= 0} {
    if {$line ne ""} { lappend cases [split $line ,] }
}

foreach case $cases {
    foreach cell $cells value $case { set $cell $value }
    Agent/TCP set minrto_ $minrto_s
    Agent/TCP set rtxcur_init_ $rtxinit_s
    Agent/TCP set singledup_ $singledup
    set agent($name) [new Agent/TCP[expr {$congestion_control eq "Tahoe" ? "" : "/$congestion_control"}]]
}

set all 0
foreach case $cases {
    foreach cell $cells value $case { set $cell $value }
    set tcp $agent($name)
    $tcp set packetSize_ $size
    $tcp set window_ $window
    set sink [receiver $congestion_control $delack_ms]
    set s [$ns node]; set r [$ns node]; set d [$ns node]
    set case_of([$s id]) $name
    access_links $s $r 0.1
    simplex_link $r $d $rate_kbit $delay_ms $limit
    simplex_link $d $r $rate_kbit $delay_ms 100000
    proc sent_$name {line} "
        if {\[lindex \$line 0\] eq {+}} { puts \[format $name,%.6f,%d \[\$::ns now\] \[lindex \$line 10\]\] }
    "
    [$ns link $s $r] trace-callback $ns sent_$name
    if {$drops ne ""} {
        set e [new ErrorModel/List]
        $e droplist [lsort -integer [split $drops]]
        $ns lossmodel $e $r $d
        $e drop-target [$ns set nullAgent_]
    }
    bulk_flow $s $d $tcp $sink 0
    if {$duration_s > $all} { set all $duration_s }
}

# Each agent draws boot_time_, the phase of its clock, when its node is reset at the start of the run.
Simulator instproc reset-order {} {
    $self instvar Node_
    return [array names Node_]
}
ns-random 1
foreach id [$ns reset-order] {
    if {[info exists case_of($id)]} {
        puts [format boot,%s,%.9f $case_of($id) [$defaultRNG uniform 0 [Agent/TCP set tcpTick_]]]
    }
}
ns-random 1
$ns at $all { exit 0 }
$ns run
