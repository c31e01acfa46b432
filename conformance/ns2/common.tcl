# Shared by the scripts for ns-2: arguments, the simulator, unidirectional links, random numbers and loss, bulk flows.

# args DEFAULTS: reads key=value arguments into the global array o. tcp.NAME=VALUE and sink.NAME=VALUE set
# defaults of Agent/TCP and Agent/TCPSink; must be called before any agent is created.
proc args {defaults} {
    global o argv
    array set o $defaults
    foreach a $argv {
        if {![regexp {^([^=]+)=(.*)$} $a -> k v]} { puts stderr "not key=value: $a"; exit 2 }
        if {[regexp {^tcp\.(\w+)$} $k -> name]} { Agent/TCP set $name $v; continue }
        if {[regexp {^sink\.(\w+)$} $k -> name]} { Agent/TCPSink set $name $v; continue }
        if {![info exists o($k)]} { puts stderr "unknown key: $k"; exit 2 }
        set o($k) $v
    }
}

# new_simulator SEED: the global ns, whose packets have space for the headers of IP and TCP only.
proc new_simulator {seed} {
    global ns
    remove-all-packet-headers
    add-packet-header IP TCP Flags
    set ns [new Simulator]
    ns-random $seed
}

# A stream of random numbers of its own; the seed chooses the substream.
proc new_random_stream {seed} {
    set stream [new RNG]
    for {set i 0} {$i < $seed} {incr i} { $stream next-substream }
    return $stream
}

# simplex_link FROM TO KBIT MS LIMIT: a unidirectional link. LIMIT includes the packet in transmission, so LIMIT-1 packets can wait.
proc simplex_link {from to kbit ms limit} {
    global ns
    $ns simplex-link $from $to ${kbit}kb ${ms}ms DropTail
    $ns queue-limit $from $to $limit
}

# Random loss from its own stream; the seed chooses the substream.
proc random_loss {rate seed} {
    set u [new RandomVariable/Uniform]
    $u use-rng [new_random_stream $seed]
    set e [new ErrorModel]
    $e unit pkt
    $e set rate_ $rate
    $e ranvar $u
    return $e
}

# Every data packet has 1500 bytes on the link. Vegas has its own output routine, which adds no header and sends no short
# first packet. Its packetSize_ is therefore 1500; the other algorithms have 1460 + 40.
proc sender {congestion_control window} {
    set tcp [new Agent/TCP[expr {$congestion_control eq "Tahoe" ? "" : "/$congestion_control"}]]
    $tcp set packetSize_ [expr {$congestion_control eq "Vegas" ? 1500 : 1460}]
    $tcp set window_ $window
    return $tcp
}

# delack_ms 0: an ack for every packet. The Sack1 sender needs the Sack1 sink.
proc receiver {congestion_control delack_ms} {
    set kind Agent/TCPSink
    if {$congestion_control eq "Sack1"} { append kind /Sack1 }
    if {$delack_ms > 0} { append kind /DelAck }
    set sink [new $kind]
    if {$delack_ms > 0} { $sink set interval_ ${delack_ms}ms }
    return $sink
}

# access_links S R MS: both directions between a sender and its router, with 100 Mbit/s and queues that never overflow.
proc access_links {s r ms} {
    simplex_link $s $r 100000 $ms 100000
    simplex_link $r $s 100000 $ms 100000
}

# bulk_flow FROM TO TCP SINK START: the sender TCP at node FROM always has data for the SINK at node TO.
proc bulk_flow {from to tcp sink start} {
    global ns
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
}

# A packet counter at the head (before the queue) or the tail (after the link) of a link.
proc counter {from to where} {
    global ns
    set link [$ns link $from $to]
    set snoop [new SnoopQueue/In]
    set qm [new QueueMonitor]
    $snoop set-monitor $qm
    if {$where eq "tail"} {
        set l [$link set link_]
        $snoop target [$l target]
        $l target $snoop
    } else {
        $link add-to-head $snoop
    }
    return $qm
}
