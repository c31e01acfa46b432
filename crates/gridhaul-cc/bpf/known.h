/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Whether a window or a threshold is one that no rule leads to. A kernel that asks for a threshold and
 * does not run the program takes what it finds for the answer: seen on Linux 6.18 once in some thousand
 * recoveries (in the context of a process with number 1), and on all before 6.1. Left alone, the sender
 * would have no limit any more. Numbers only, in segments.
 */
#pragma once

#include "plain.h"

/* The slow-start threshold of a connection that has lost nothing (`TCP_INFINITE_SSTHRESH`). */
#define UNLIMITED 0x7fffffff

/* Window and threshold as they were with the last acknowledgement. */
struct known {
    u32 window;
    u32 threshold;
};

/* Most segments that a window can have come to since: twice as many, or what it was before a loss. */
inlined u64 most(const struct known *known, u32 before_loss)
{
    u64 before = larger(known->window, before_loss);
    return 2 * before + 10;
}

inlined int threshold_is_wrong(const struct known *known, u32 threshold, u32 before_loss)
{
    return threshold != UNLIMITED && threshold != known->threshold
        && threshold > most(known, before_loss);
}

inlined int window_is_wrong(const struct known *known, u32 window, u32 before_loss)
{
    return window > most(known, before_loss);
}
