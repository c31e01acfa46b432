/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Declarations of the kernel, limited to what the programs use.
 *
 * Structures list only the fields that are accessed here. The kernel relocates the field offsets when it
 * loads a program (CO-RE: the compiler records each access, and the loader passes the records on). The
 * numbers below are the kernel's stable interface for programs.
 */
#pragma once

/* On the licence: the kernel accepts congestion control only from programs that declare a GPL-compatible
 * licence (`check_struct_ops_btf_id`). The files of this folder are therefore also offered under the
 * GPL. */

#include "window_check.h"
#include "types.h"

/* Tests without a kernel define their own substitutes. */
#ifdef __bpf__
#include "target.h"
#endif

#define SEC(name) __attribute__((section(name), used))

/* --- structures of the kernel ------------------------------------------------------------------ */

FIELDS_BY_NAME

struct sock;

struct inet_connection_sock {
    u64 icsk_ca_priv[13];
    u8 icsk_ca_state : 5;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 mss_cache;
    u32 snd_una;
    u32 snd_nxt;
    u32 snd_cwnd;
    u32 snd_cwnd_cnt;
    u32 snd_cwnd_clamp;
    u32 snd_ssthresh;
    u32 prior_cwnd;
    u32 packets_out;
    u32 max_packets_out;
    u32 retrans_out;
    u32 sacked_out;
    u32 lost_out;
    u64 tcp_mstamp;
    u8 is_cwnd_limited : 1;
};

struct ack_sample {
    s32 rtt_us;
};

FIELDS_END

#define CREATE 1 /* for `storage_of`: create the storage if there is none */

/* --- maps --------------------------------------------------------------------------------------- */

/* The loader creates the maps; a declaration defines the symbol of a map in the program, and the types
 * required by the kernel. */
#define array_of(type)                                                                             \
    struct {                                                                                       \
        u32 *key;                                                                                  \
        type *value;                                                                               \
    }

/* The only entry of an array. */
#define single_entry(map)                                                                             \
    ({                                                                                             \
        u32 _zero = 0;                                                                             \
        map_lookup(&(map), &_zero);                                                                \
    })

#define count(counters, field)                                                                     \
    do {                                                                                           \
        if (counters)                                                                              \
            __sync_fetch_and_add(&(counters)->field, 1);                                           \
    } while (0)

/* --- functions for all senders ------------------------------------------------------------------ */

inlined struct tcp_sock *sender(const u64 *context) { return (struct tcp_sock *)context[0]; }

inlined u8 state_of(const struct tcp_sock *tcp)
{
    const struct inet_connection_sock *connection = (const void *)tcp;
    return bit_of(connection, icsk_ca_state);
}

/* State of an algorithm in the socket: 104 bytes. */
inlined void *memory(const u64 *context)
{
    struct inet_connection_sock *connection = (void *)context[0];
    return connection->icsk_ca_priv;
}

/* Segments in flight: sent, not acknowledged or SACKed, and not deemed lost (RFC 6675, "pipe"). */
inlined u32 in_flight(const struct tcp_sock *tcp)
{
    return tcp->packets_out - (tcp->sacked_out + tcp->lost_out) + tcp->retrans_out;
}

inlined void set_window(struct tcp_sock *tcp, u32 segments)
{
    tcp->snd_cwnd = smaller(segments, tcp->snd_cwnd_clamp);
}

/* Whether the sender is limited by the window, which may then grow (RFC 2861; `tcp_is_cwnd_limited`): the
 * window delayed data or, in slow start, half of it was in flight. */
inlined int is_used(const struct tcp_sock *tcp)
{
    if (bit_of(tcp, is_cwnd_limited))
        return 1;
    return tcp->snd_cwnd < tcp->snd_ssthresh && tcp->snd_cwnd < 2 * tcp->max_packets_out;
}

/* Flags of the corrected values. */
enum { CORRECTED_WINDOW = 1, CORRECTED_THRESHOLD = 2 };

inlined void record_window(struct observed_window *observed, const struct tcp_sock *tcp)
{
    observed->window = tcp->snd_cwnd;
    observed->threshold = tcp->snd_ssthresh;
    observed->notified_state = state_of(tcp);
}

/* With each acknowledgement: corrects a window or threshold that the kernel set without running the program.
 * `threshold` is the value that the program would have returned for the window before the loss. */
inlined u32 correct_window(struct observed_window *observed, struct tcp_sock *tcp, u32 threshold)
{
    u32 before = tcp->prior_cwnd, corrected = 0;
    u8 state = state_of(tcp);
    if (threshold_is_wrong(observed, tcp->snd_ssthresh, before, state))
        corrected |= CORRECTED_THRESHOLD;
    if (window_is_wrong(observed, tcp->snd_cwnd, before, state))
        corrected |= CORRECTED_WINDOW;
    if (corrected & CORRECTED_THRESHOLD)
        tcp->snd_ssthresh = threshold;
    if (corrected & CORRECTED_WINDOW)
        set_window(tcp, larger(before, 2));
    record_window(observed, tcp);
    return corrected;
}

/* Additive increase of one segment per acknowledged window (RFC 5681, section 3.1, counted in segments
 * as in RFC 3465, section 2.1). */
inlined void grow_by_one_a_window(struct tcp_sock *tcp, u32 acked)
{
    u32 window = larger(tcp->snd_cwnd, 1);
    u32 credit = tcp->snd_cwnd_cnt + acked;
    if (credit >= window) {
        credit -= window;
        set_window(tcp, window + 1);
    }
    tcp->snd_cwnd_cnt = smaller(credit, window);
}
