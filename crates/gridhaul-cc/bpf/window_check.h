/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Detects windows and thresholds that cannot result from any rule. Some kernels need a threshold without
 * running the program, and use uninitialised memory as its result (docs/limitations/kernel.md). Without a
 * correction, the sender would have no congestion window limit any more. All values are in segments.
 */
#pragma once

#include "types.h"

/* The slow-start threshold of a connection without losses (`TCP_INFINITE_SSTHRESH`). */
#define UNLIMITED 0x7fffffff

/* Congestion states of a sender (`tcp_ca_state`). */
enum { OPEN = 0, DISORDER = 1, REDUCED = 2, RECOVERY = 3, LOSS = 4 };

/* Window and threshold at the last acknowledgement, and the state of the last `set_state` call. */
struct observed_window {
    u32 window;
    u32 threshold;
    u8 notified_state;
};

/* Whether the kernel itself reduces the window towards the threshold with each acknowledgement (RFC 9937):
 * the window is then the data in flight plus the data that may be sent now, not the algorithm's. */
inlined int is_reducing(u8 state)
{
    return state == REDUCED || state == RECOVERY;
}

/* Whether a state with a new threshold has begun without a call of the program. */
inlined int missed_state_change(const struct observed_window *observed, u8 state)
{
    if (state == LOSS)
        return observed->notified_state != LOSS;
    return is_reducing(state) && !is_reducing(observed->notified_state);
}

/* The largest window possible since then: twice the previous window or the window before a loss. */
inlined u64 largest_window(const struct observed_window *observed, u32 before_loss)
{
    u64 before = larger(observed->window, before_loss);
    return 2 * before + 10;
}

inlined int threshold_is_wrong(const struct observed_window *observed, u32 threshold, u32 before_loss, u8 state)
{
    if (missed_state_change(observed, state) || threshold < 2)
        return 1;
    return threshold != UNLIMITED && threshold != observed->threshold
        && threshold > largest_window(observed, before_loss);
}

inlined int window_is_wrong(const struct observed_window *observed, u32 window, u32 before_loss, u8 state)
{
    return !is_reducing(state) && window > largest_window(observed, before_loss);
}
