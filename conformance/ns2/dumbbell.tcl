# One flow s -> r -> d in ns-2 2.35: reference numbers for the `ns2` TCP profile.
#
#   s --- 100 Mbit/s, 0.1 ms, large queues --- r --- rate, half of the remaining RTT, queue and loss --- d
#
# The reverse path of the acks has the same rates and delays, large queues and no loss.
# Usage: ns dumbbell.tcl [key=value ...]    Prints one CSV line; header=1 prints the column names first.
#
#   congestion_control    Tahoe | Reno | Newreno | Sack1 | Vegas
#   rate_kbit  bottleneck, both directions (kbit/s)
#   rtt_ms     propagation delay of the round trip, access links included, transmission times not included
#   buffer     limit_ of the bottleneck queue in packets, including the packet in transmission: buffer-1 can wait
#   loss       loss probability of a data packet, applied before the bottleneck queue, so that a lost packet
#              uses no buffer space (loss_at=tail: applied after the bottleneck)
#   window     sender's window limit (packets)
#   delack_ms  delayed-ack timer; 0 = an ack for every packet
#   seed       replication number of the loss stream, also given to ns-random
#   duration warmup   seconds; goodput counts in-order data packets, 1460 bytes each, in [warmup, duration]
#   tcp.NAME=VALUE sink.NAME=VALUE   any other ns-2 default
#
# Columns after the settings: goodput_kbit; sent, retransmits (data packets, from the start), timeouts,
#   queue_drops, loss_drops (from the start).

source [file join [file dirname [info script]] common.tcl]
args {
    congestion_control Newreno rate_kbit 3000 rtt_ms 100 buffer 100 loss 0 loss_at head window 10000 delack_ms 0
    seed 1 duration 100 warmup 10 header 0
}

new_simulator $o(seed)
set s [$ns node]; set r [$ns node]; set d [$ns node]
set far [expr {$o(rtt_ms) / 2.0 - 0.1}]
access_links $s $r 0.1
simplex_link $r $d $o(rate_kbit) $far $o(buffer)
simplex_link $d $r $o(rate_kbit) $far 100000

# Counters: before = packets that enter the loss model, after = packets that leave it.
set loss [random_loss $o(loss) $o(seed)]
if {$o(loss_at) eq "head"} {
    set after [counter $r $d head]
    $ns lossmodel $loss $r $d
    set before [counter $r $d head]
} else {
    set after [counter $r $d tail]
    $ns link-lossmodel $loss $r $d
    set before [counter $r $d tail]
}
$loss drop-target [$ns set nullAgent_] ;# or the queue's drop count would include these

set tcp [sender $o(congestion_control) $o(window)]
set sink [receiver $o(congestion_control) $o(delack_ms)]
bulk_flow $s $d $tcp $sink 0
$ns at $o(warmup) { set bytes0 [$sink set bytes_] }
$ns at $o(duration) finish

# bytes_ of the sink counts complete packets in order, 1500 bytes each.
set queue [$ns monitor-queue $r $d [open /dev/null w]]
proc finish {} {
    global o tcp sink bytes0 before after queue
    set packets [expr {([$sink set bytes_] - $bytes0) / 1500.0}]
    set goodput [expr {$packets * 1460 * 8 / ($o(duration) - $o(warmup)) / 1000}]
    if {$o(header)} {
        puts [join {congestion_control rate_kbit rtt_ms loss buffer delack_ms window seed duration warmup
            goodput_kbit sent retransmits timeouts queue_drops loss_drops} ,]
    }
    puts [join [list $o(congestion_control) $o(rate_kbit) $o(rtt_ms) $o(loss) $o(buffer) $o(delack_ms) $o(window) \
        $o(seed) $o(duration) $o(warmup) [format %.3f $goodput] \
        [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_] [$queue set pdrops_] \
        [expr {[$before set parrivals_] - [$after set parrivals_]}]] ,]
    exit 0
}
$ns run
