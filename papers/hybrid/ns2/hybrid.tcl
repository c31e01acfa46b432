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

source [file join [file dirname [info script]] ../../../conformance/ns2/common.tcl]
args {
    dvbt_ms 50 gprs_ms 700 clink_ms 1 dvbt_kbit 20000 gprs_kbit 20 clink_kbit 20
    window 50 variant Tahoe delack_ms 0 down_loss 0 up_loss 0 up_loss_at post
    cqueue 50 nqueue 100000 squeue 100000 seed 1 duration 2000 warmup 100 mbytes 0 header 0
}
new_simulator $o(seed)

set S [$ns node]; set C [$ns node]; set n [$ns node]
simplex_link $S $C $o(dvbt_kbit) $o(dvbt_ms) $o(squeue)
simplex_link $C $n $o(clink_kbit) $o(clink_ms) $o(cqueue)
simplex_link $n $S $o(gprs_kbit) $o(gprs_ms) $o(nqueue)

# Byte counters at the receiving side of links. Of several counters, the one installed last is passed first.
set m_down [counter $S $C tail]
set e_down [random_loss $o(down_loss) $o(seed)]
set e_up [random_loss $o(up_loss) $o(seed)]
$ns link-lossmodel $e_down $S $C
set m_up_after [counter $C $n tail]
if {$o(up_loss_at) eq "post"} { $ns link-lossmodel $e_up $C $n } else { $ns lossmodel $e_up $C $n }
foreach e [list $e_down $e_up] { $e drop-target [$ns set nullAgent_] } ;# do not count these as drops of the queue
set m_up [counter $C $n tail]
set q_c [$ns monitor-queue $C $n [open /dev/null w]]

set tcp [sender $o(variant) $o(window)]
set sink [receiver $o(variant) $o(delack_ms)]
bulk_flow $S $C $tcp $sink 0

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
