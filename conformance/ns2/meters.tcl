# N meters over one bottleneck in ns-2 2.35: reference numbers for the `ns2` TCP profile with many connections.
#
#   s --- rate, half of the RTT, queue --- d        all meters at s, their sinks at d
#
# Each meter has one connection for the whole run and sends messages of one packet: 200 bytes and 40 of headers. The reverse
# path of the acks has the same rate and delay, and a queue that never overflows.
# Usage: ns meters.tcl [key=value ...]    Prints one CSV line; header=1 prints the column names first.
#
#   congestion_control    Reno | Newreno | Vegas
#   meters     number of connections
#   window     window limit in packets
#   rate_kbit  bottleneck, both directions (kbit/s)
#   rtt_ms     propagation delay of the round trip
#   buffer     limit_ of the bottleneck queue in packets, including the packet in transmission: buffer-1 can wait
#   load       poisson | periodic | on_off
#   every      mean time between the messages of a meter (s)
#   spread     connections open, and reports begin, at random times from 0 to this value (s)
#   seed       number of the random stream
#   duration warmup   seconds; everything is counted in [warmup, duration]
#
# Loads. poisson: independent exponential times. periodic: fixed times, random phase. on_off: bursts of
# eight messages on average, half a second apart, separated by idle times; the lengths of bursts and idle times
# are exponential. If a burst ends between two messages, the remaining time to the next message is kept for the next burst.
#
# Packet 0 of ns-2 is the SYN without payload: it is sent when the connection opens, without a message.
# Columns: packets offered to the bottleneck and dropped there, mean queue length, mean time in the queue of the packets
# that were not dropped (ms), packets acknowledged, retransmissions, timeouts.
#
# Agents are connected to node and port directly, because the cost of `attach-agent` grows with the square of their
# number.

source [file join [file dirname [info script]] common.tcl]
args {
    congestion_control Reno meters 1000 window 2 rate_kbit 1000 rtt_ms 100 buffer 101 load poisson every 10 spread 30
    seed 1 duration 300 warmup 60 header 0
}
new_simulator $o(seed)
$ns use-scheduler Heap
set random_stream [new_random_stream $o(seed)]

set s [$ns node]; set d [$ns node]
simplex_link $s $d $o(rate_kbit) [expr {$o(rtt_ms) / 2.0}] $o(buffer)
simplex_link $d $s $o(rate_kbit) [expr {$o(rtt_ms) / 2.0}] 1000000

# ns-2 assigns the ports of the first agents, so that both nodes have a port classifier.
foreach node [list $s $d] { $ns attach-agent $node [new Agent/Null] }

# place AGENT NODE PORT PEER_NODE: replaces attach-agent and connect.
proc place {agent node port peer} {
    $agent target [$node entry]
    $agent set agent_addr_ [$node node-addr]
    $agent set agent_port_ $port
    $agent set dst_addr_ [$peer node-addr]
    $agent set dst_port_ $port
    [$node set dmux_] install $port $agent
}

proc exponential {mean} {
    global random_stream
    expr {-$mean * log(1 - [$random_stream uniform 0 1])}
}

# A burst of meter i begins now; needed(i) is the burst time that remains until its next message.
set spacing 0.5
set on 4.0
set off [expr {max(0, $o(every) * 8 - $on)}]
proc burst {i} {
    global ns tcps needed spacing on off
    set now [$ns now]
    set length [exponential $on]
    set at 0
    while {$at + $needed($i) <= $length} {
        set at [expr {$at + $needed($i)}]
        $ns at [expr {$now + $at}] "[lindex $tcps $i] advanceby 1"
        set needed($i) $spacing
    }
    set needed($i) [expr {$needed($i) - ($length - $at)}]
    $ns at [expr {$now + $length + [exponential $off]}] "burst $i"
}

# The source of meter i begins at the time `start`, in its stationary state.
proc begin {i tcp start} {
    global ns o random_stream needed spacing on off
    $ns at $start "$tcp advanceby 1"
    switch $o(load) {
        poisson {
            set source [new Application/Traffic/Exponential]
            $source set packetSize_ 200
            $source set burst_time_ 0
            $source set idle_time_ $o(every)
            $source set rate_ 1e9
            $source attach-agent $tcp
            $ns at $start "$source start"
        }
        periodic {
            set source [new Application/Traffic/CBR]
            $source set packetSize_ 200
            $source set rate_ [expr {1600.0 / $o(every)}]
            $source attach-agent $tcp
            $ns at [expr {$start + [$random_stream uniform 0 $o(every)]}] "$source start"
        }
        on_off {
            set needed($i) [$random_stream uniform 0 $spacing]
            if {[$random_stream uniform 0 [expr {$on + $off}]] >= $on} {
                set start [expr {$start + [exponential $off]}]
            }
            $ns at $start "burst $i"
        }
    }
}

# Vegas adds no header of its own, not even to packet 0.
Agent/TCP set packetSize_ [expr {$o(congestion_control) eq "Vegas" ? 240 : 200}]
Agent/TCP set window_ $o(window)
for {set i 0} {$i < $o(meters)} {incr i} {
    set tcp [new Agent/TCP/$o(congestion_control)]
    set sink [new Agent/TCPSink]
    place $tcp $s [expr {$i + 10}] $d
    place $sink $d [expr {$i + 10}] $s
    lappend tcps $tcp
    begin $i $tcp [$random_stream uniform 0 $o(spread)]
}

# counts: arrivals, drops, packet-seconds of waiting, acknowledged, retransmissions, timeouts; from the start.
set queue [$ns monitor-queue $s $d [open /dev/null w]]
set waiting [$queue get-pkts-integrator]
proc counts {} {
    global ns tcps queue waiting
    $waiting newpoint [$ns now] [$waiting set lasty_]
    set acked 0; set retransmissions 0; set timeouts 0
    foreach tcp $tcps {
        incr acked [$tcp set ack_]
        incr retransmissions [$tcp set nrexmitpack_]
        incr timeouts [$tcp set nrexmit_]
    }
    list [$queue set parrivals_] [$queue set pdrops_] [$waiting set sum_] $acked $retransmissions $timeouts
}
$ns at $o(warmup) { set before [counts] }
$ns at $o(duration) finish
proc finish {} {
    global o before
    foreach now [counts] then $before { lappend difference [expr {$now - $then}] }
    lassign $difference offered dropped waited acked retransmissions timeouts
    if {$o(header)} {
        puts [join {congestion_control meters window rate_kbit rtt_ms buffer load every spread seed duration warmup
            offered dropped waiting wait_ms acked retransmissions timeouts} ,]
    }
    puts [join [list $o(congestion_control) $o(meters) $o(window) $o(rate_kbit) $o(rtt_ms) $o(buffer) $o(load) \
        $o(every) $o(spread) $o(seed) $o(duration) $o(warmup) $offered $dropped \
        [format %.4f [expr {$waited / ($o(duration) - $o(warmup))}]] \
        [format %.4f [expr {1e3 * $waited / max(1, $offered - $dropped)}]] $acked $retransmissions $timeouts] ,]
    exit 0
}
$ns run
