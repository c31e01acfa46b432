/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * gh_vegas: TCP Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
 * Internet", IEEE JSAC 13(8), 1995) as congestion control of the Linux kernel.
 *
 * Follows gridhaul's simulator (crates/gridhaul-core/src/tcp/congestion/vegas/mod.rs, "core" below) rule by rule.
 * Comments state the deviations that the kernel enforces. Windows are in segments, times in
 * microseconds.
 */
#include "kernel.h"

struct settings {
    u32 alpha;
    u32 beta;
    u32 gamma;
};

struct counters {
    u64 opened;
    u64 closed;
    u64 rounds;
    u64 grown;
    u64 unchanged;
    u64 shrunk;
    u64 losses;
    u64 timeouts;
    u64 corrected;
};

array_of(struct settings) settings SEC(".maps");
array_of(struct counters) counters SEC(".maps");

/* State of the algorithm in the socket. */
struct vegas {
    /* Sum and number of the RTT samples of the current round trip. */
    u64 sum_us;
    /* Start of the current round trip. */
    u64 round_start_us;
    u32 samples;
    /* "BaseRTT": the least RTT, of a segment that was not queued (section 3.2). 0: unknown. */
    u32 base_us;
    /* The round trip ends when a byte after this sequence number is acknowledged. */
    u32 round_end;
    /* RTT sample of the current acknowledgement; 0: none. */
    u32 newest_us;
    /* The window when a loss was detected. */
    u32 window_at_loss;
    struct observed_window observed;
    u32 alpha, beta, gamma;
    u8 slow_start;
    /* Slow start grows in every other round trip. */
    u8 grows;
    /* Whether acknowledgements of this round trip increase the window. */
    u8 growing;
    /* Recovery ended within this round trip: its samples are discarded. */
    u8 discard_round;
};

/* The next sequence number, not counting lost segments that wait for retransmission (core: ns-2 goes back
 * with its next sequence number at a timeout). */
inlined u32 next_unlost_seq(const struct tcp_sock *tcp)
{
    u32 next = tcp->snd_una + in_flight(tcp) * tcp->mss_cache;
    return (s32)(next - tcp->snd_nxt) < 0 ? next : tcp->snd_nxt;
}

inlined void start_round(struct vegas *vegas, const struct tcp_sock *tcp)
{
    vegas->round_end = next_unlost_seq(tcp);
    vegas->round_start_us = tcp->tcp_mstamp;
    vegas->sum_us = 0;
    vegas->samples = 0;
    vegas->discard_round = 0;
}

SEC("struct_ops/init")
int vegas_init(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct vegas *vegas = memory(context);
    const struct settings *parameters = single_entry(settings);
    struct counters *all = single_entry(counters);

    vegas->alpha = parameters ? parameters->alpha : 1;
    vegas->beta = parameters ? parameters->beta : 3;
    vegas->gamma = parameters ? parameters->gamma : 1;
    vegas->base_us = 0;
    vegas->newest_us = 0;
    vegas->window_at_loss = 0;
    vegas->slow_start = 1;
    vegas->grows = 1;
    vegas->growing = 1;
    start_round(vegas, tcp);
    record_window(&vegas->observed, tcp);
    count(all, opened);
    return 0;
}

SEC("struct_ops/release")
int vegas_release(unused u64 *context)
{
    struct counters *all = single_entry(counters);
    count(all, closed);
    return 0;
}

/* Section 3.1: a reduction for losses after the last one; the kernel calls once for each recovery episode.
 * A quarter less (ns-2), to two segments from three or less. Core halves the window after repeated
 * retransmissions of a segment, which the kernel does not report. */
inlined u32 reduced(u32 window)
{
    return window <= 3 ? 2 : window - window / 4;
}

/* ns-2: after a recovery, slow start ends until the next timeout. */
inlined void end_slow_start(struct vegas *vegas)
{
    vegas->window_at_loss = 0;
    vegas->slow_start = 0;
    vegas->growing = 0;
    vegas->discard_round = 1;
}

/* Each acknowledgement has at most one RTT sample, of the newest segment that was not retransmitted. */
SEC("struct_ops/pkts_acked")
int vegas_pkts_acked(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct vegas *vegas = memory(context);
    if (correct_window(&vegas->observed, tcp, reduced(tcp->prior_cwnd))) {
        struct counters *all = single_entry(counters);
        end_slow_start(vegas);
        count(all, corrected);
    }
    const struct ack_sample *sample = (void *)context[1];
    s32 rtt_us = sample->rtt_us;
    if (rtt_us > 0)
        vegas->newest_us = rtt_us;
    return 0;
}

/* Core's `measure`: the sample counts for the round trip that it starts, not for the one that it ends (ns-2). */
inlined void measure(struct vegas *vegas)
{
    u32 rtt_us = vegas->newest_us;
    if (!rtt_us)
        return;
    vegas->newest_us = 0;
    vegas->sum_us += rtt_us;
    vegas->samples += 1;
    if (!vegas->base_us || rtt_us < vegas->base_us)
        vegas->base_us = rtt_us;
}

/* Mean of the RTT samples of the round trip; without samples, its duration, if that is plausible. */
inlined u64 mean_us(const struct vegas *vegas, u64 now_us)
{
    if (vegas->samples)
        return vegas->sum_us / vegas->samples;
    u64 since_us = now_us - vegas->round_start_us;
    return since_us >= vegas->base_us ? since_us : 0;
}

/* Section 3.2: Diff = Expected - Actual, times BaseRTT: the queued segments, rounded to whole ones (core's
 * `queued_segments`). The data in flight include the segments just acknowledged: one in core, several with
 * delayed acknowledgements or segmentation offload. */
inlined u32 queued_segments(const struct vegas *vegas, const struct tcp_sock *tcp, u64 mean, u32 acked)
{
    u64 mss = larger(tcp->mss_cache, 1);
    u64 out = (u64)(in_flight(tcp) + acked) * mss;
    u64 sent = next_unlost_seq(tcp) - vegas->round_end;
    u64 expected = out * mean, actual = sent * vegas->base_us;
    if (actual >= expected)
        return 0;
    return (2 * (expected - actual) + mean * mss) / (2 * mean * mss);
}

inlined void leave_slow_start(struct vegas *vegas, struct tcp_sock *tcp)
{
    vegas->slow_start = 0;
    tcp->snd_ssthresh = 2;
}

/* The decision at the end of a round trip, as in core. */
inlined void evaluate_round(struct vegas *vegas, struct tcp_sock *tcp, u32 queue, struct counters *all)
{
    count(all, rounds);
    if (vegas->slow_start) {
        /* Section 3.3: growth "only every other RTT", so that a comparison is valid in between. */
        u8 too_fast = queue > vegas->gamma;
        vegas->grows = !vegas->grows;
        vegas->growing = vegas->grows && !too_fast;
        if (vegas->grows && too_fast) {
            /* ns-2: an eighth less, and slow start ends. */
            leave_slow_start(vegas, tcp);
            set_window(tcp, larger(tcp->snd_cwnd * 7 / 8, 2));
            count(all, shrunk);
        }
        return;
    }
    vegas->growing = queue < vegas->alpha;
    if (queue > vegas->beta) {
        /* Section 3.2: a linear decrease; ns-2: by one segment at once. */
        set_window(tcp, larger(tcp->snd_cwnd - 1, 2));
        count(all, shrunk);
    } else if (vegas->growing) {
        count(all, grown);
    } else {
        count(all, unchanged);
    }
}

/* Called for every acknowledgement of new data outside of recovery. */
SEC("struct_ops/cong_avoid")
int vegas_cong_avoid(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct vegas *vegas = memory(context);
    u32 una = context[1], acked = context[2];
    struct counters *all = single_entry(counters);

    if (vegas->discard_round)
        start_round(vegas, tcp);
    if ((s32)(una - vegas->round_end) > 0) {
        u64 mean = mean_us(vegas, tcp->tcp_mstamp);
        if (mean) {
            /* ns-2: with a single segment in flight no queue builds up, so a longer path is detected. */
            if (next_unlost_seq(tcp) - vegas->round_end <= tcp->mss_cache || !vegas->base_us || mean < vegas->base_us)
                vegas->base_us = mean;
            evaluate_round(vegas, tcp, queued_segments(vegas, tcp, mean, acked), all);
        }
        start_round(vegas, tcp);
    }
    if (vegas->slow_start && tcp->snd_cwnd >= tcp->snd_ssthresh) {
        /* Slow start has reached its threshold within the round trip. */
        leave_slow_start(vegas, tcp);
        vegas->growing = 0;
    }
    if (vegas->growing && is_used(tcp)) {
        if (vegas->slow_start)
            set_window(tcp, smaller(tcp->snd_cwnd + acked, larger(tcp->snd_ssthresh, tcp->snd_cwnd)));
        else
            grow_by_one_a_window(tcp, acked);
    }
    measure(vegas);
    return 0;
}

SEC("struct_ops/ssthresh")
int vegas_ssthresh(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct vegas *vegas = memory(context);
    u32 window = tcp->snd_cwnd;
    vegas->window_at_loss = window;
    return reduced(window);
}

SEC("struct_ops/set_state")
int vegas_set_state(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    struct vegas *vegas = memory(context);
    u8 state = context[1];
    struct counters *all = single_entry(counters);
    vegas->observed.notified_state = state;

    if (state == LOSS) {
        /* Core's `on_timeout`: half of the window as threshold, slow start from two segments. */
        if (vegas->window_at_loss)
            tcp->snd_ssthresh = larger(vegas->window_at_loss / 2, 2);
        set_window(tcp, larger(tcp->snd_cwnd, 2));
        vegas->window_at_loss = 0;
        vegas->slow_start = 1;
        vegas->grows = 1;
        vegas->growing = 1;
        vegas->discard_round = 1;
        count(all, timeouts);
    } else if (state == RECOVERY || state == REDUCED) {
        end_slow_start(vegas);
        count(all, losses);
    }
    return 0;
}

/* The loss was spurious (RFC 3522, RFC 3708): restore the window before it. */
SEC("struct_ops/undo_cwnd")
int vegas_undo_cwnd(u64 *context)
{
    struct tcp_sock *tcp = sender(context);
    return larger(tcp->snd_cwnd, tcp->prior_cwnd);
}

/* Segments of a unit of segmentation offload wait for each other at the bottleneck, which is not a queue of
 * the path. At low rates, where the kernel sends units of `tcp_min_tso_segs` (two) segments, each segment is
 * a unit of its own, as in core. */
SEC("struct_ops/min_tso_segs")
u32 vegas_min_tso_segs(unused u64 *context)
{
    return 1;
}
