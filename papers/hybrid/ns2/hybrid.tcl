# One long download over a DVB-T downlink with its acks on a GPRS uplink (paper `hybrid`), in ns-2 2.35.
#
#   S --- DVB-T 20 Mbit/s, dvbt_ms ---> C          data, 1460+40 bytes
#   C --- loss link 20 kbit/s, clink_ms ---> n --- GPRS 20 kbit/s, gprs_ms ---> S     acks, 40 bytes
#
# Usage: ns hybrid.tcl [key=value ...]     Prints one CSV line; `header=1` prints the column names first.
#
#   dvbt_ms gprs_ms clink_ms   one-way delays of the three links (ms)
#   dvbt_kbit gprs_kbit clink_kbit   their rates (kbit/s)
#   window          sender's window limit (packets)
#   variant         Tahoe | Reno | Newreno | Sack1
#   delack_ms       interval of the sink's delayed ack; 0 = an ack for every packet
#   down_loss       loss probability of data packets on DVB-T, applied where the packet reaches C
#   up_loss         loss probability of acks
#   up_loss_at      post = after the loss link (the paper); pre = before C's queue
#   cqueue nqueue squeue   queue limits at C, n, S (packets, including the one in transmission)
#   seed            replication number: selects the substream of two separate streams, one per error model
#   duration warmup seconds; rates are means over [warmup, duration]
#   mbytes          >0: stop after this number of megabytes (1e6 bytes with headers) has reached C
#   tcp.NAME=VALUE  sets any Agent/TCP default, e.g. tcp.minrto_=1.0
#
# Columns: dvbt_kbit  rate at C, with headers; gprs_kbit  rate of the loss link before the loss, with headers;
#   gprs_after_kbit  the same after the loss; goodput_kbit  in-order payload at the sink;
#   sent retransmits timeouts  counted from the start; ack_drops  acks dropped by C's full queue.

array set o {
    dvbt_ms 50 gprs_ms 700 clink_ms 1 dvbt_kbit 20000 gprs_kbit 20 clink_kbit 20
    window 50 variant Tahoe delack_ms 0 down_loss 0 up_loss 0 up_loss_at post
    cqueue 50 nqueue 100000 squeue 100000 seed 1 duration 2000 warmup 100 mbytes 0 header 0
}
foreach a $argv {
    if {![regexp {^([^=]+)=(.*)$} $a -> k v]} { puts stderr "not key=value: $a"; exit 2 }
    if {[regexp {^tcp\.(\w+)$} $k -> name]} { Agent/TCP set $name $v; continue }
    if {![info exists o($k)]} { puts stderr "unknown key: $k"; exit 2 }
    set o($k) $v
}

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
ns-random $o(seed)

set S [$ns node]; set C [$ns node]; set n [$ns node]
proc simplex_link {from to kbit ms limit} {
    global ns
    $ns simplex-link $from $to ${kbit}kb ${ms}ms DropTail
    $ns queue-limit $from $to $limit
}
simplex_link $S $C $o(dvbt_kbit) $o(dvbt_ms) $o(squeue)
simplex_link $C $n $o(clink_kbit) $o(clink_ms) $o(cqueue)
simplex_link $n $S $o(gprs_kbit) $o(gprs_ms) $o(nqueue)

# A byte counter at the receiving side of a link. Of several counters, the one installed last is passed first.
proc meter {from to} {
    global ns
    set l [[$ns link $from $to] set link_]
    set snoop [new SnoopQueue/In]
    set qm [new QueueMonitor]
    $snoop set-monitor $qm
    $snoop target [$l target]
    $l target $snoop
    return $qm
}
proc losses {rate} {
    global o
    set r [new RNG]
    for {set i 0} {$i < $o(seed)} {incr i} { $r next-substream }
    set u [new RandomVariable/Uniform]
    $u use-rng $r
    set e [new ErrorModel]
    $e unit pkt
    $e set rate_ $rate
    $e ranvar $u
    return $e
}
set m_down [meter $S $C]
set e_down [losses $o(down_loss)]
set e_up [losses $o(up_loss)]
$ns link-lossmodel $e_down $S $C
set m_up_after [meter $C $n]
if {$o(up_loss_at) eq "post"} { $ns link-lossmodel $e_up $C $n } else { $ns lossmodel $e_up $C $n }
foreach e [list $e_down $e_up] { $e drop-target [$ns set nullAgent_] } ;# do not count these as drops of the queue
set m_up [meter $C $n]
set q_c [$ns monitor-queue $C $n [open /dev/null w]]

set tcp [new Agent/TCP[expr {$o(variant) eq "Tahoe" ? "" : "/$o(variant)"}]]
$tcp set packetSize_ 1460
$tcp set window_ $o(window)
set kind Agent/TCPSink
if {$o(variant) eq "Sack1"} { append kind /Sack1 }
if {$o(delack_ms) > 0} { append kind /DelAck }
set sink [new $kind]
if {$o(delack_ms) > 0} { $sink set interval_ $o(delack_ms)ms }
$ns attach-agent $S $tcp
$ns attach-agent $C $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"

proc look {} {
    global m_down m_up m_up_after sink
    list [$m_down set barrivals_] [$m_up set barrivals_] [$m_up_after set barrivals_] [$sink set bytes_]
}
proc finish {} {
    global o ns tcp at0 t0 q_c
    set dt [expr {[$ns now] - $t0}]
    set row {}
    set i 0
    foreach a $at0 b [look] {
        set kbit [expr {($b - $a) * 8.0 / $dt / 1000}]
        if {$i == 3} { set kbit [expr {$kbit * 1460 / 1500}] }
        lappend row [format %.3f $kbit]
        incr i
    }
    lappend row [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_] [$q_c set pdrops_]
    if {$o(header)} {
        puts [join {variant delack_ms window down_loss up_loss seed seconds dvbt_kbit gprs_kbit
            gprs_after_kbit goodput_kbit sent retransmits timeouts ack_drops} ,]
    }
    puts [join [concat $o(variant) $o(delack_ms) $o(window) $o(down_loss) $o(up_loss) $o(seed) \
        [format %.2f [$ns now]] $row] ,]
    exit 0
}
proc watch {} {
    global ns m_down o
    if {[$m_down set barrivals_] >= $o(mbytes) * 1e6} finish
    $ns at [expr {[$ns now] + 0.1}] watch
}
$ns at $o(warmup) { set at0 [look]; set t0 [$ns now] }
if {$o(mbytes) > 0} { $ns at [expr {$o(warmup) + 0.05}] watch }
$ns at $o(duration) finish
$ns run
