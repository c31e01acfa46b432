/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Whether a window or a threshold is one that no rule leads to. A kernel that asks for a threshold and
 * does not run the program takes what it finds for the answer. Left alone, the sender would have no limit
 * any more. Which kernels do, docs/limitations/kernel.md says. Numbers only, in segments.
 */
#pragma once

#include "types.h"

/* The slow-start threshold of a connection that has lost nothing (`TCP_INFINITE_SSTHRESH`). */
#define UNLIMITED 0x7fffffff

/* States of a sender (`set_state`). */
enum { OPEN = 0, DISORDER = 1, REDUCED = 2, RECOVERY = 3, LOSS = 4 };

/* Window and threshold as they were with the last acknowledgement, and the state that the kernel told last. */
struct known {
    u32 window;
    u32 threshold;
    u8 told;
};

/* Whether the kernel brings the window down itself, anew with each acknowledgement, from the threshold
 * (RFC 6937): then the window is what is out and may be sent now, not what an algorithm wants. */
inlined int is_reducing(u8 state)
{
    return state == REDUCED || state == RECOVERY;
}

/* Whether a state with a new threshold has begun, and the program was told of neither. */
inlined int is_untold(const struct known *known, u8 state)
{
    if (state == LOSS)
        return known->told != LOSS;
    return is_reducing(state) && !is_reducing(known->told);
}

/* Most segments that a window can have come to since: twice as many, or what it was before a loss. */
inlined u64 most(const struct known *known, u32 before_loss)
{
    u64 before = larger(known->window, before_loss);
    return 2 * before + 10;
}

inlined int threshold_is_wrong(const struct known *known, u32 threshold, u32 before_loss, u8 state)
{
    if (is_untold(known, state) || threshold < 2)
        return 1;
    return threshold != UNLIMITED && threshold != known->threshold
        && threshold > most(known, before_loss);
}

inlined int window_is_wrong(const struct known *known, u32 window, u32 before_loss, u8 state)
{
    return !is_reducing(state) && window > most(known, before_loss);
}
