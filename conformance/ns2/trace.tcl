# Packet-by-packet behaviour of one ns-2 2.35 sender under an explicit list of lost packets.
#
#   s --- 100 Mbit/s, 0.1 ms --- r --- rate, half of the remaining RTT, losses --- d
#
# Usage: ns trace.tcl [key=value ...]
# Prints CSV: time,event,seqno,cwnd,ssthresh,dupacks,srtt,rttvar,backoff
#
#   event send      a data packet leaves the sender; the state is that after the event that released the packet
#         ack       an ack arrives at the sender; the state is that BEFORE the sender processes the ack
#         lost      the loss list drops a data packet (lostack: an ack); queuedrop: the full queue drops a packet
#   seqno           packet number; 0 is the 40-byte packet in place of the SYN; an ack carries the last packet in order
#   srtt rttvar     in the units of ns-2: ticks of tcpTick_ times 8 and times 4
#
#   congestion_control rate_kbit rtt_ms buffer window delack_ms duration   as in dumbbell.tcl
#   drops           packets to lose: ordinal numbers of the data packets reaching r, from 0, retransmissions
#                   counted, separated by commas, e.g. drops=20,22,60
#   ack_drops       the same for acks leaving d
#   seed            determines boot_time only, the offset of the sender's clock ticks, printed on the first line
#   tcp.NAME=VALUE sink.NAME=VALUE   any other ns-2 default

source [file join [file dirname [info script]] common.tcl]
args {
    congestion_control Newreno rate_kbit 1000 rtt_ms 100 buffer 1000 window 50 delack_ms 0 drops {} ack_drops {}
    seed 1 duration 10
}

set ns [new Simulator]
set s [$ns node]; set r [$ns node]; set d [$ns node]
set far [expr {$o(rtt_ms) / 2.0 - 0.1}]
access_links $s $r 0.1
simplex_link $r $d $o(rate_kbit) $far $o(buffer)
simplex_link $d $r $o(rate_kbit) $far 100000

# The sender draws boot_time_ uniformly from one tick at each reset; the second value (Vegas: the third) is used.
ns-random $o(seed)
for {set i 0} {$i < ($o(congestion_control) eq "Vegas" ? 3 : 2)} {incr i} {
    set boot [$defaultRNG uniform 0 [Agent/TCP set tcpTick_]]
}
ns-random $o(seed)
set tcp [sender $o(congestion_control) $o(window)]
set sink [receiver $o(congestion_control) $o(delack_ms)]

proc state {event line} {
    global ns tcp
    puts [format %.6f,%s,%d,%.4f,%d,%d,%d,%d,%d [$ns now] $event [lindex $line 10] [$tcp set cwnd_] \
        [$tcp set ssthresh_] [$tcp set dupacks_] [$tcp set srtt_] [$tcp set rttvar_] [$tcp set backoff_]]
}
# Callbacks receive the line that ns-2 would write to a trace file.
proc on_send {line} { if {[lindex $line 0] eq "+"} { state send $line } }
proc on_ack {line} { if {[lindex $line 0] eq "r"} { state ack $line } }
proc on_drop {name line} { if {[lindex $line 0] eq "d"} { state $name $line } }
[$ns link $s $r] trace-callback $ns on_send
[$ns link $r $s] trace-callback $ns on_ack
[$ns link $r $d] trace-callback $ns "on_drop queuedrop"

proc lose {from to list name} {
    global ns
    if {$list eq ""} return
    set e [new ErrorModel/List]
    $e droplist [lsort -integer [split $list ,]]
    $ns lossmodel $e $from $to
    set t [$ns create-trace Drop {} $from $to]
    $t set callback_ 1
    $t proc handle a "on_drop $name \$a"
    $t target [$ns set nullAgent_]
    $e drop-target $t
}
lose $r $d $o(drops) lost
lose $d $r $o(ack_drops) lostack

puts "# $o(congestion_control) rate_kbit=$o(rate_kbit) rtt_ms=$o(rtt_ms) buffer=$o(buffer) window=$o(window)\
 delack_ms=$o(delack_ms) drops=$o(drops) ack_drops=$o(ack_drops) boot_time=[format %.9f $boot]"
puts time,event,seqno,cwnd,ssthresh,dupacks,srtt,rttvar,backoff
bulk_flow $s $d $tcp $sink 0
$ns at $o(duration) { exit 0 }
$ns run
