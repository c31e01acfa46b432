/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * gh_medx: TCP-MEDX (Xiong, Yim, Leigh and Murata, "Energy-Efficient Method to Improve TCP Performance
 * for MANETs"; paper `medx`) as congestion control of the Linux kernel: Reno that asks at each loss
 * whether the delays on the way to the receiver speak for congestion, and keeps its window where they do
 * not.
 *
 * Follows gridhaul's own machine (crates/gridhaul-core/src/tcp/congestion/medx.rs, "core" below) in how
 * it reads the paper. Two things are added: the offset between the clocks of the two ends is found and
 * taken out (`struct clocks`), and what the kernel does to a window on its own is put right
 * (`medx_set_state`).
 *
 * Two programs share a connection's memory: one for all connections of a control group writes and reads
 * the option of the header (`delays`), one is the congestion control (`medx_*`).
 */
#include "loss_classification.h"
#include "option.h"

struct counters {
    u64 opened;
    u64 closed;
    /* Acknowledgements of new data that came with a delay, and without. */
    u64 delays;
    u64 without_delay;
    /* Losses, by what they were judged to be; `unclassified` are taken for congestion. */
    u64 error;
    u64 congestion;
    u64 unclassified;
    /* Timeouts among them. */
    u64 timeouts;
    /* Judgements for which an offset between the clocks was taken out. */
    u64 offset_removed;
    u64 corrected;
};

array_of(struct settings) settings SEC(".maps");
array_of(struct counters) counters SEC(".maps");
/* Memory beside each socket. */
struct {
    int *key;
    struct connection *value;
} connections SEC(".maps");

inlined u32 now_us(void) { return clock_ns() / 1000; }

/* ================================================================================================
 * The option
 * ================================================================================================ */

/* Whether the connection of this moment is, or will be, controlled by gh_medx. */
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

/* From now on the option is written, and told of when it arrives. */
inlined void take_part(struct bpf_sock_ops *ops)
{
    set_callbacks(ops, ops->callbacks | CALL_FOR_UNKNOWN | CALL_TO_WRITE);
}

/* Bytes of payload in the segment that has arrived. */
inlined u32 payload(struct bpf_sock_ops *ops)
{
    u8 *header = ops->skb_data;
    if ((void *)(header + 20) > ops->skb_data_end)
        return 0;
    u32 header_len = (header[12] >> 4) * 4;
    return ops->skb_len > header_len ? ops->skb_len - header_len : 0;
}

/* None for a connection that is only being asked for (SYN received). */
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
    struct connection *mine = connection_at(ops);
    if (!mine)
        return;
    u32 now = now_us(), sent_at = swap32(option.sent_at_us), delay = swap32(option.delay_us);
    /* Receiver, section 2: T_recv - T_snd of every segment. */
    if (payload(ops)) {
        mine->own_delay = now - sent_at;
        mine->own_known = 1;
    }
    if (delay != UNKNOWN) {
        /* Our own time of sending comes back, without the time for which the answer was held up. */
        u32 round_trip = now - (sent_at - delay);
        const struct settings *chosen = the_entry(settings);
        if (chosen && (s32)round_trip >= 0)
            take_delay(mine, chosen, delay, round_trip);
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
    struct connection *mine = connection_at(ops);
    if (mine && mine->own_known)
        option.delay_us = swap32(mine->own_delay);
    write_to_header(ops, &option, sizeof(option), 0);
}

/* Takes part in connections of gh_medx, and in those whose other end has written the option. All others
 * it sees when they are made, and leaves them alone. */
SEC("sockops/delays")
int delays(struct bpf_sock_ops *ops)
{
    struct option option = {};
    switch (ops->op) {
    case CONNECTING:
    case LISTENING:
        if (uses_medx(ops))
            take_part(ops);
        break;
    case ESTABLISHED_HERE:
    case ESTABLISHED_THERE:
        if (find_option(ops, &option) || uses_medx(ops))
            take_part(ops);
        break;
    case OPTION_ARRIVED:
        option_arrived(ops);
        break;
    case OPTION_LENGTH:
        /* Beside many SACK blocks there is no room: then the segment goes without. */
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

/* What the algorithm remembers within the socket. */
struct medx {
    /* The window that the algorithm wants, which the kernel's own reductions leave alone. */
    u32 window;
    struct known known;
    /* Judged in `ssthresh`, and not yet counted. */
    u8 cause;
    /* The threshold is `proportion`'s, until recovery ends. */
    u8 brings_down;
};

inlined struct connection *connection_of(const u64 *context)
{
    return storage_of(&connections, (void *)context[0], 0, CREATE);
}

inlined enum cause judge_loss(struct connection *mine)
{
    const struct settings *chosen = the_entry(settings);
    struct counters *all = the_entry(counters);
    if (!mine || !chosen)
        return UNCLASSIFIED;
    enum cause cause = judge(mine, chosen);
    if (cause != UNCLASSIFIED && !clocks_agree(mine))
        count(all, offset_removed);
    return cause;
}

/* For those who know why packets were lost: a loss is that of the first segment that is not acknowledged. */
inlined void note_judgement(struct connection *mine, const struct tcp_sock *tcp, enum cause cause)
{
    if (!mine)
        return;
    struct judgement *said = &mine->said[mine->judged % SAID_MAX];
    said->missing = tcp->snd_una;
    said->called = cause;
    mine->judged += 1;
}

inlined void count_cause(struct connection *mine, const struct tcp_sock *tcp, enum cause cause)
{
    struct counters *all = the_entry(counters);
    note_judgement(mine, tcp, cause);
    if (cause == ERROR) {
        count(all, error);
        count(mine, error);
    } else if (cause == CONGESTION) {
        count(all, congestion);
        count(mine, congestion);
    } else {
        count(all, unclassified);
        count(mine, unclassified);
    }
}

SEC("struct_ops/init")
int medx_init(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct counters *all = the_entry(counters);
    medx->window = tcp->snd_cwnd;
    medx->cause = NONE;
    medx->brings_down = 0;
    note(&medx->known, tcp);
    count(all, opened);
    return 0;
}

SEC("struct_ops/release")
int medx_release(unused u64 *context)
{
    struct counters *all = the_entry(counters);
    count(all, closed);
    return 0;
}

inlined u32 halved(u32 window) { return larger(window / 2, 2); }

SEC("struct_ops/pkts_acked")
int medx_pkts_acked(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct connection *mine = connection_of(context);
    struct counters *all = the_entry(counters);
    /* As if for a loss that was not judged. */
    u32 corrected = correct_window(&medx->known, tcp, halved(tcp->prior_cwnd));
    if (corrected & CORRECTED_THRESHOLD)
        medx->window = tcp->snd_ssthresh;
    if (corrected)
        count(all, corrected);
    if (mine && mine->heard) {
        mine->heard = 0;
        count(all, delays);
    } else {
        count(all, without_delay);
        count(mine, without_delay);
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

/* What is out the kernel brings down in the proportion of threshold and window (RFC 6937, section 3), so
 * after a burst beyond the window as much would stay out from error to error. The threshold with which
 * `wanted` is out at the end. */
inlined u32 proportion(u32 wanted, u32 window, u32 out)
{
    return larger((u64)wanted * window / out, 2);
}

/* The window behind a loss. The kernel asks when it enters a recovery, after a timeout, and when it has
 * been told to slow down by other means; which of these, it says only afterwards (`set_state`). During a
 * recovery it never sends more than this allows (RFC 6937), and at its end this is the window: one as
 * large as before keeps it. */
SEC("struct_ops/ssthresh")
int medx_ssthresh(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    u32 window = tcp->snd_cwnd, out = in_flight(tcp);
    medx->cause = judge_loss(connection_of(context));
    medx->window = medx->cause == ERROR ? window : halved(window);
    medx->brings_down = out > window;
    return medx->brings_down ? proportion(medx->window, window, out) : medx->window;
}

SEC("struct_ops/set_state")
int medx_set_state(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct medx *medx = memory(context);
    struct connection *mine = connection_of(context);
    struct counters *all = the_entry(counters);
    u8 state = context[1];
    enum cause cause = medx->cause;
    medx->cause = NONE;
    medx->known.told = state;

    if (medx->brings_down && !is_reducing(state)) {
        tcp->snd_ssthresh = medx->window;
        medx->brings_down = 0;
    }
    if (state == REDUCED) {
        /* Not a loss: a mark (RFC 3168), or a queue of this host that is full. That is congestion. */
        if (cause == ERROR)
            tcp->snd_ssthresh = medx->window = halved(medx->window);
    } else if (state == RECOVERY) {
        count_cause(mine, tcp, cause);
    } else if (state == LOSS) {
        /* The kernel has collapsed the window already, and does not ask about a timeout within a
         * recovery or after another timeout. A loss by error gets its window back. */
        if (cause == NONE) {
            cause = judge_loss(mine);
            if (cause != ERROR)
                tcp->snd_ssthresh = medx->window = halved(medx->window);
        }
        if (cause == ERROR)
            set_window(tcp, larger(medx->window, tcp->snd_cwnd));
        count_cause(mine, tcp, cause);
        count(all, timeouts);
    }
    return 0;
}

/* The loss was none (RFC 3522, RFC 3708): back to the window before it. */
SEC("struct_ops/undo_cwnd")
int medx_undo_cwnd(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    return larger(tcp->snd_cwnd, tcp->prior_cwnd);
}
