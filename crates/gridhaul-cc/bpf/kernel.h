/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What the programs use of the kernel, and no more.
 *
 * Structures of the kernel list just the fields that are read or written here; where a field lies, the
 * kernel says itself when it loads the program (CO-RE: the compiler notes each access, and the loader
 * hands the notes on). The numbers below them are the stable interface of the kernel to programs.
 */
#pragma once

/* On the licence: the kernel takes congestion control only from programs that say that they are offered
 * under the GPL (`check_struct_ops_btf_id`). The files of this folder are, beside the licence of the
 * rest. */

#include "window_check.h"
#include "types.h"

/* Tests without a kernel have stand-ins of their own. */
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

#define CREATE 1 /* for `storage_of`: make it if there is none */

/* --- maps --------------------------------------------------------------------------------------- */

/* The loader makes the maps; a declaration gives the name by which a program calls one, and the types
 * that the kernel wants to know. */
#define array_of(type)                                                                             \
    struct {                                                                                       \
        u32 *key;                                                                                  \
        type *value;                                                                               \
    }

/* The only entry of an array. */
#define the_entry(map)                                                                             \
    ({                                                                                             \
        u32 _zero = 0;                                                                             \
        map_lookup(&(map), &_zero);                                                                \
    })

#define count(counters, field)                                                                     \
    do {                                                                                           \
        if (counters)                                                                              \
            __sync_fetch_and_add(&(counters)->field, 1);                                           \
    } while (0)

/* --- what every sender needs -------------------------------------------------------------------- */

inlined struct tcp_sock *sender(const u64 *context) { return (struct tcp_sock *)context[0]; }

inlined u8 state_of(const struct tcp_sock *tcp)
{
    const struct inet_connection_sock *connection = (const void *)tcp;
    return bit_of(connection, icsk_ca_state);
}

/* Memory of an algorithm within the socket: 104 bytes. */
inlined void *memory(const u64 *context)
{
    struct inet_connection_sock *connection = (void *)context[0];
    return connection->icsk_ca_priv;
}

/* Segments on their way: sent, not known to have arrived, not taken for lost (RFC 6675, "pipe"). */
inlined u32 in_flight(const struct tcp_sock *tcp)
{
    return tcp->packets_out - (tcp->sacked_out + tcp->lost_out) + tcp->retrans_out;
}

inlined void set_window(struct tcp_sock *tcp, u32 segments)
{
    tcp->snd_cwnd = smaller(segments, tcp->snd_cwnd_clamp);
}

/* Whether the window was used, so that it may grow (RFC 2861; `tcp_is_cwnd_limited`): it held something
 * back or, in slow start, half of it was out. */
inlined int is_used(const struct tcp_sock *tcp)
{
    if (bit_of(tcp, is_cwnd_limited))
        return 1;
    return tcp->snd_cwnd < tcp->snd_ssthresh && tcp->snd_cwnd < 2 * tcp->max_packets_out;
}

/* What was put right. */
enum { CORRECTED_WINDOW = 1, CORRECTED_THRESHOLD = 2 };

inlined void note(struct known *known, const struct tcp_sock *tcp)
{
    known->window = tcp->snd_cwnd;
    known->threshold = tcp->snd_ssthresh;
    known->told = state_of(tcp);
}

/* With each acknowledgement: puts right what a program that was not run has left behind, if it has.
 * `threshold` is what it would have said about the window before the loss. */
inlined u32 correct_window(struct known *known, struct tcp_sock *tcp, u32 threshold)
{
    u32 before = tcp->prior_cwnd, corrected = 0;
    u8 state = state_of(tcp);
    if (threshold_is_wrong(known, tcp->snd_ssthresh, before, state))
        corrected |= CORRECTED_THRESHOLD;
    if (window_is_wrong(known, tcp->snd_cwnd, before, state))
        corrected |= CORRECTED_WINDOW;
    if (corrected & CORRECTED_THRESHOLD)
        tcp->snd_ssthresh = threshold;
    if (corrected & CORRECTED_WINDOW)
        set_window(tcp, larger(before, 2));
    note(known, tcp);
    return corrected;
}

/* One segment more for each window that was acknowledged (RFC 5681, section 3.1, counted in segments
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
