# Two flows through one bottleneck, the second of which starts later, in ns-2 2.35.
#
#   a1 --- 1 Gbit/s, access1_ms --- r1 --- rate_kbit, bottleneck_ms, buffer --- r2 --- 1 Gbit/s, 0.1 ms --- b
#   a2 --- 1 Gbit/s, access2_ms --- r1
#
# Usage: ns pair.tcl [key=value ...]    Prints the goodput of both flows in kbit/s.
#
#   first second    algorithm of each flow: Tahoe | Reno | Newreno | Sack1 | Vegas
#   start2          start of the second flow (s)
#   buffer          limit_ of the bottleneck queue in packets, including the packet in transmission
#   window          windows of the senders (packets)
#   seed            seed of the phases of the clocks

source [file join [file dirname [info script]] common.tcl]
args {
    first Vegas second Vegas rate_kbit 3499 access1_ms 2.0 access2_ms 46.3 bottleneck_ms 27.8 buffer 100
    start2 0.37 window 300 seed 1 duration 300 warmup 20
}
new_simulator $o(seed)
foreach name {a1 a2 r1 r2 b} { set $name [$ns node] }
foreach {from to kbit ms limit} [list \
    $a1 $r1 1000000 $o(access1_ms) 100000  $a2 $r1 1000000 $o(access2_ms) 100000 \
    $r1 $r2 $o(rate_kbit) $o(bottleneck_ms) $o(buffer)  $r2 $b 1000000 0.1 100000 \
] {
    simplex_link $from $to $kbit $ms $limit
    simplex_link $to $from $kbit $ms 100000
}
set sinks {}
foreach {node algorithm start} [list $a1 $o(first) 0 $a2 $o(second) $o(start2)] {
    set sink [receiver $algorithm 0]
    bulk_flow $node $b [sender $algorithm $o(window)] $sink $start
    lappend sinks $sink
}
proc received {} {
    global sinks
    lmap sink $sinks { $sink set bytes_ }
}
$ns at $o(warmup) { set before [received] }
proc finish {} {
    global o before
    set goodputs [lmap start $before end [received] {
        format %.1f [expr {($end - $start) / 1500.0 * 1460 * 8 / ($o(duration) - $o(warmup)) / 1000}]
    }]
    puts [join $goodputs ,]
    exit 0
}
$ns at $o(duration) finish
$ns run
