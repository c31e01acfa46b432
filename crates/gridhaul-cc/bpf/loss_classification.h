/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What MEDX makes of delays: the paper's average, list and criteria, and the clocks of the two ends. Needs no
 * kernel, so that tests can hold it against gridhaul's own machine.
 */
#pragma once

#include "types.h"

/* The most delays that are kept. */
#define KEPT_MAX 8

struct settings {
    /* α and β of the paper, in thousandths, and how many delays its list holds (2 to 8). */
    u32 alpha_permille;
    u32 beta_permille;
    u32 kept;
};

/* In place of a delay: no segment with data has arrived yet. */
#define UNKNOWN 0xffffffffu

/* Between which bounds the receiver's clock is ahead of ours: see `narrow`. */
struct clocks {
    u32 least;
    u32 most;
};

/* A loss: the number of the first byte that was missing, and what it was called (`cause`). */
struct judgement {
    u32 missing;
    u32 called;
};

/* The most judgements that are kept for those who look at them. */
#define SAID_MAX 16

/* A connection, at either end. Delays are kept as they arrive, less `base`, a constant that makes them
 * positive: differences of clocks that wrap may be anything. */
struct connection {
    /* P̄ in 1024ths of a microsecond. */
    u64 average;
    u32 base;
    struct clocks clocks;
    /* The propagation buffer, newest first. */
    u32 delays[KEPT_MAX];
    u32 arrived;
    /* A delay has come since the last judgement; since the last acknowledgement of new data. */
    u8 news;
    u8 heard;
    u8 padding[2];
    /* As receiver: how long the newest segment with data was on its way, and whether there was one. */
    u32 own_delay;
    u32 own_known;
    /* This connection's part of the counters. */
    u32 without_delay;
    u32 error;
    u32 congestion;
    u32 unclassified;
    /* How many losses were judged, and the newest of them. */
    u32 judged;
    struct judgement said[SAID_MAX];
};

/* Where the newest delay starts out: any change of up to 17 minutes stays positive. */
#define MIDDLE (1u << 30)

/* The sender's and the receiver's clock count from different moments, so a reported delay d is the time on
 * the way and the offset θ between them. The answer tells its own time on the receiver's clock as well;
 * that less d is when the segment left on ours, so the round trip r is known without the offset. The time
 * on the way is at least nothing and at most r, so that θ lies between d - r and d. All segments together
 * narrow it down: from the greatest d - r to the least d. (Half of a round trip between the bounds is what
 * NTP assumes as well: RFC 5905, section 8.)
 */
inlined void narrow(struct clocks *clocks, u32 delay, u32 round_trip)
{
    u32 least = delay - smaller(round_trip, MIDDLE / 2);
    clocks->least = larger(clocks->least, least);
    clocks->most = smaller(clocks->most, delay);
    if (clocks->least > clocks->most) {
        /* The clocks drift: what was known of them is out of date. */
        clocks->least = least;
        clocks->most = delay;
    }
}

/* Sender, figure 3, lines 1 and 2, and equation 1: P̄ = α P̄ + (1 - α) P_new; it begins with the first. */
inlined void take_delay(struct connection *mine, const struct settings *chosen, u32 reported,
                        u32 round_trip)
{
    if (!mine->arrived) {
        mine->base = reported - MIDDLE;
        mine->clocks.least = 0;
        mine->clocks.most = UNKNOWN;
    }
    u32 delay = reported - mine->base;
    narrow(&mine->clocks, delay, round_trip);
    u64 newest = (u64)delay << 10;
    u32 alpha = chosen->alpha_permille;
    mine->average = mine->arrived ? (alpha * mine->average + (1000 - alpha) * newest) / 1000 : newest;
#pragma unroll
    for (int i = KEPT_MAX - 1; i > 0; i--)
        mine->delays[i] = mine->delays[i - 1];
    mine->delays[0] = delay;
    mine->arrived += 1;
    mine->news = 1;
    mine->heard = 1;
}

enum cause { NONE = 0, ERROR, CONGESTION, UNCLASSIFIED };

/* Whether the bounds admit that there is no offset. */
inlined int clocks_agree(const struct connection *mine)
{
    u32 none = 0 - mine->base;
    return none >= mine->clocks.least && none <= mine->clocks.most;
}

/* What the receiver's clock is ahead of ours by, less `base`: nothing if that may be, else the middle of
 * the bounds. */
inlined u32 offset(const struct connection *mine)
{
    if (clocks_agree(mine))
        return 0 - mine->base;
    return mine->clocks.least + (mine->clocks.most - mine->clocks.least) / 2;
}

/* Figure 3, `predict_loss_cause`. Without news nothing is judged. */
inlined enum cause judge(struct connection *mine, const struct settings *chosen)
{
    if (!mine->news || mine->arrived < chosen->kept)
        return UNCLASSIFIED;
    mine->news = 0;
    u64 ahead = offset(mine);
    /* Criterion I: the current delay is beyond β P̄. */
    u64 current = ((u64)mine->delays[0] - ahead) << 10;
    u64 average = mine->average > ahead << 10 ? mine->average - (ahead << 10) : 0;
    if (current * 1000 <= average * chosen->beta_permille)
        return ERROR;
    /* Criterion II: no delay in the list is below the one before it. */
#pragma unroll
    for (u32 i = 0; i + 1 < KEPT_MAX; i++)
        if (i + 1 < chosen->kept && mine->delays[i] < mine->delays[i + 1])
            return ERROR;
    return CONGESTION;
}
