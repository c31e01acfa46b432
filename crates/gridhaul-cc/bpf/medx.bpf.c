/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * gh_medx: TCP-MEDX (Xiong, Yim, Leigh and Murata, "Energy-Efficient Method to Improve TCP Performance
 * for MANETs"; paper `medx`) as congestion control of the Linux kernel: Reno that classifies each loss by
 * the one-way delays to the receiver, and keeps its window if they do not indicate congestion.
 *
 * Follows gridhaul's simulator (crates/gridhaul-core/src/tcp/congestion/medx.rs, "core" below) in its
 * interpretation of the paper, with two additions: the offset between the clocks of the two ends is estimated
 * and subtracted (`struct clocks`), and changes that the kernel itself makes to a window are corrected
 * (`medx_set_state`).
 *
 * Two programs share the state of a connection: one writes and reads the TCP option for all connections of
 * a control group (`delays`), one is the congestion control (`medx_*`).
 */
#include "loss_classification.h"
#include "option.h"

struct counters {
    u64 opened;
    u64 closed;
    /* Acknowledgements of new data with and without a delay. */
    u64 delays;
    u64 without_delay;
    /* Losses by classification; unclassified ones are treated as congestion. */
    u64 error;
    u64 congestion;
    u64 unclassified;
    /* Timeouts among the losses. */
    u64 timeouts;
    /* Classifications for which an offset between the clocks was subtracted. */
    u64 offset_removed;
    u64 corrected;
};

/* Parameters of a single socket, written by a process that has its descriptor. */
struct socket_settings {
    struct settings own;
};

array_of(struct settings) settings SEC(".maps");
array_of(struct counters) counters SEC(".maps");
/* Storage attached to each socket. */
struct {
    int *key;
    struct connection *value;
} connections SEC(".maps");
/* Settings of the sockets that have their own. */
struct {
    int *key;
    struct socket_settings *value;
} own_settings SEC(".maps");

/* The parameters of a socket: its own, or those of the machine. */
inlined const struct settings *settings_of(void *sk)
{
    const struct socket_settings *found = sk ? storage_of(&own_settings, sk, 0, 0) : 0;
    if (found)
        return &found->own;
    return single_entry(settings);
}

inlined u32 now_us(void) { return clock_ns() / 1000; }

/* ================================================================================================
 * The option
 * ================================================================================================ */

/* Whether the connection of this callback uses, or will use, gh_medx. */
inlined int uses_medx(struct bpf_sock_ops *ops)
{
    u64 name[2] = {};
    if (get_option(ops, LEVEL_TCP, TCP_CONGESTION, name, sizeof(name)))
        return 0;
    return name[0] == 0x007864656d5f6867ull; /* "gh_medx" */
}

inlined int find_option(struct bpf_sock_ops *ops, struct option *option)
{
    option->kind = OPTION_KIND;
    option->len = 4; /* to search: kind, length and identifier */
    option->identifier = swap16(OPTION_ID);
    return find_in_header(ops, option, sizeof(*option), 0) == OPTION_LEN;
}

/* Enables the callbacks for writing the option and for its arrival. */
inlined void enable_option(struct bpf_sock_ops *ops)
{
    set_callbacks(ops, ops->callbacks | CALL_FOR_UNKNOWN | CALL_TO_WRITE);
}

/* Payload bytes of the segment that has arrived. */
inlined u32 payload(struct bpf_sock_ops *ops)
{
    u8 *header = ops->skb_data;
    if ((void *)(header + 20) > ops->skb_data_end)
        return 0;
    u32 header_len = (header[12] >> 4) * 4;
    return ops->skb_len > header_len ? ops->skb_len - header_len : 0;
}

/* None for a connection request (SYN received). */
inlined struct connection *connection_at(struct bpf_sock_ops *ops)
{
    struct bpf_sock *sk = ops->sk;
    return sk ? storage_of(&connections, sk, 0, CREATE) : 0;
}

inlined void option_arrived(struct bpf_sock_ops *ops)
{
    struct option option = {};
    if (!find_option(ops, &option))
        return;
    struct connection *connection = connection_at(ops);
    if (!connection)
        return;
    u32 now = now_us(), sent_at = swap32(option.sent_at_us), delay = swap32(option.delay_us);
    /* Receiver, section 2: T_recv - T_snd of every segment. */
    if (payload(ops)) {
        connection->measured_delay = now - sent_at;
        connection->has_measured_delay = 1;
    }
    if (delay != UNKNOWN) {
        /* The local send time returns, excluding the delay of the acknowledgement at the receiver. */
        u32 round_trip = now - (sent_at - delay);
        const struct settings *parameters = settings_of(ops->sk);
        if (parameters && (s32)round_trip >= 0)
            add_delay(connection, parameters, delay, round_trip);
    }
}

inlined void write_option(struct bpf_sock_ops *ops)
{
    struct option option = {
        .kind = OPTION_KIND,
        .len = OPTION_LEN,
        .identifier = swap16(OPTION_ID),
        .sent_at_us = swap32(now_us()),
        .delay_us = UNKNOWN,
    };
    struct connection *connection = connection_at(ops);
    if (connection && connection->has_measured_delay)
        option.delay_us = swap32(connection->measured_delay);
    write_to_header(ops, &option, sizeof(option), 0);
}

/* Enabled for connections of gh_medx, and for those whose other end has sent the option. All other connections
 * are ignored after their establishment. */
SEC("sockops/delays")
int delays(struct bpf_sock_ops *ops)
{
    struct option option = {};
    switch (ops->op) {
    case CONNECTING:
    case LISTENING:
        if (uses_medx(ops))
            enable_option(ops);
        break;
    case ESTABLISHED_HERE:
    case ESTABLISHED_THERE:
        if (find_option(ops, &option) || uses_medx(ops))
            enable_option(ops);
        break;
    case OPTION_ARRIVED:
        option_arrived(ops);
        break;
    case OPTION_LENGTH:
        /* With many SACK blocks there is no space for the option: the segment is sent without it. */
        reserve_in_header(ops, OPTION_LEN, 0);
        break;
    case OPTION_WRITE:
        write_option(ops);
        break;
    }
    return 1;
}

/* ================================================================================================
 * Congestion control
 * ================================================================================================ */

/* State of the algorithm in the socket. */
struct medx {
    /* The window of the algorithm, independent of the kernel's own reductions. */
    u32 window;
    struct observed_window observed;
    /* Classified in `ssthresh`, and not yet counted. */
    u8 cause;
    /* The threshold was scaled by `proportion`, until recovery ends. */
    u8 reduces_in_flight;
};

inlined struct connection *connection_of(const u64 *context)
{
    return storage_of(&connections, (void *)context[0], 0, CREATE);
}

inlined enum cause classify_with_counters(const u64 *context, struct connection *connection)
{
    const struct settings *parameters = settings_of((void *)context[0]);
    struct counters *all = single_entry(counters);
    if (!connection || !parameters)
        return UNCLASSIFIED;
    enum cause cause = classify_loss(connection, parameters);
    if (cause != UNCLASSIFIED && !clocks_agree(connection))
        count(all, offset_removed);
    return cause;
}

/* For comparison with the ground truth: a loss is identified by the first unacknowledged segment. */
inlined void record_classification(struct connection *connection, const struct tcp_sock *tcp, enum cause cause)
{
    if (!connection)
        return;
    struct classification *newest = &connection->classifications[connection->classified % CLASSIFICATIONS_MAX];
    newest->first_missing = tcp->snd_una;
    newest->cause = cause;
    connection->classified += 1;
}

inlined void count_cause(struct connection *connection, const struct tcp_sock *tcp, enum cause cause)
{
    struct counters *all = single_entry(counters);
    record_classification(connection, tcp, cause);
    if (cause == ERROR) {
        count(all, error);
        count(connection, error);
    } else if (cause == CONGESTION) {
        count(all, congestion);
        count(connection, congestion);
    } else {
        count(all, unclassified);
        count(connection, unclassified);
    }
}

SEC("struct_ops/init")
int medx_init(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct counters *all = single_entry(counters);
    medx->window = tcp->snd_cwnd;
    medx->cause = NONE;
    medx->reduces_in_flight = 0;
    record_window(&medx->observed, tcp);
    count(all, opened);
    return 0;
}

SEC("struct_ops/release")
int medx_release(unused u64 *context)
{
    struct counters *all = single_entry(counters);
    count(all, closed);
    return 0;
}

inlined u32 halved(u32 window) { return larger(window / 2, 2); }

SEC("struct_ops/pkts_acked")
int medx_pkts_acked(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct connection *connection = connection_of(context);
    struct counters *all = single_entry(counters);
    /* As for a loss that was not classified. */
    u32 corrected = correct_window(&medx->observed, tcp, halved(tcp->prior_cwnd));
    if (corrected & CORRECTED_THRESHOLD)
        medx->window = tcp->snd_ssthresh;
    if (corrected)
        count(all, corrected);
    if (connection && connection->delay_since_ack) {
        connection->delay_since_ack = 0;
        count(all, delays);
    } else {
        count(all, without_delay);
        count(connection, without_delay);
    }
    return 0;
}

/* Reno (RFC 5681, section 3.1). */
SEC("struct_ops/cong_avoid")
int medx_cong_avoid(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    u32 acked = context[2];
    if (is_used(tcp)) {
        u32 window = tcp->snd_cwnd;
        if (window < tcp->snd_ssthresh)
            set_window(tcp, smaller(window + acked, tcp->snd_ssthresh));
        else
            grow_by_one_a_window(tcp, acked);
    }
    medx->window = tcp->snd_cwnd;
    return 0;
}

/* The kernel reduces the data in flight in proportion to threshold and window (RFC 6937, section 3), so
 * after a burst beyond the window, too much data would stay in flight across several losses by error. Returns
 * the threshold with which `wanted` segments are in flight at the end of recovery. */
inlined u32 proportion(u32 wanted, u32 window, u32 out)
{
    return larger((u64)wanted * window / out, 2);
}

/* The window after a loss. The kernel calls this when it enters recovery, after a timeout, and for other
 * reductions; it announces the kind only afterwards (`set_state`). During recovery the kernel does not send
 * more than this value allows (RFC 6937), and afterwards it is the window: the current window is kept by
 * returning it. */
SEC("struct_ops/ssthresh")
int medx_ssthresh(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    u32 window = tcp->snd_cwnd, out = in_flight(tcp);
    medx->cause = classify_with_counters(context, connection_of(context));
    medx->window = medx->cause == ERROR ? window : halved(window);
    medx->reduces_in_flight = out > window;
    return medx->reduces_in_flight ? proportion(medx->window, window, out) : medx->window;
}

SEC("struct_ops/set_state")
int medx_set_state(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct connection *connection = connection_of(context);
    struct counters *all = single_entry(counters);
    u8 state = context[1];
    enum cause cause = medx->cause;
    medx->cause = NONE;
    medx->observed.notified_state = state;

    if (medx->reduces_in_flight && !is_reducing(state)) {
        tcp->snd_ssthresh = medx->window;
        medx->reduces_in_flight = 0;
    }
    if (state == REDUCED) {
        /* Not a loss, but an ECN mark (RFC 3168) or a full local queue: both are congestion. */
        if (cause == ERROR)
            tcp->snd_ssthresh = medx->window = halved(medx->window);
    } else if (state == RECOVERY) {
        count_cause(connection, tcp, cause);
    } else if (state == LOSS) {
        /* The kernel has collapsed the window already, and does not call `ssthresh` for a timeout within a
         * recovery or after another timeout. After a loss by error the window is restored. */
        if (cause == NONE) {
            cause = classify_with_counters(context, connection);
            if (cause != ERROR)
                tcp->snd_ssthresh = medx->window = halved(medx->window);
        }
        if (cause == ERROR)
            set_window(tcp, larger(medx->window, tcp->snd_cwnd));
        count_cause(connection, tcp, cause);
        count(all, timeouts);
    }
    return 0;
}

/* The loss was spurious (RFC 3522, RFC 3708): restore the window before it. */
SEC("struct_ops/undo_cwnd")
int medx_undo_cwnd(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    return larger(tcp->snd_cwnd, tcp->prior_cwnd);
}
