/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * How MEDX classifies losses from delays: the paper's average, delay buffer and criteria, and the estimate of
 * the clock offset. Independent of the kernel, so that tests can compare it with gridhaul's simulator.
 */
#pragma once

#include "types.h"

/* Maximum length of the delay buffer. */
#define DELAYS_MAX 8

struct settings {
    /* α and β of the paper, in thousandths, and the length of its propagation buffer (2 to 8). */
    u32 alpha_permille;
    u32 beta_permille;
    u32 list_length;
    u32 classifier;
};

/* Rules that classify losses: the criteria on one-way delays or on half of the round-trip time, and controls
 * without information (crates/gridhaul-core/src/tcp/loss_classifier). */
enum classifier { ONE_WAY_DELAY = 0, HALF_RTT, ALWAYS_ERROR, ALWAYS_CONGESTION };

/* Reported instead of a delay before the first segment with data has arrived. */
#define UNKNOWN 0xffffffffu

/* Bounds of the offset of the receiver's clock to the local one: see `update_clock_bounds`. */
struct clocks {
    u32 min_offset;
    u32 max_offset;
};

/* A loss: the sequence number of the first missing byte, and its classification (`cause`). */
struct classification {
    u32 first_missing;
    u32 cause;
};

/* Number of classifications stored for observers. */
#define CLASSIFICATIONS_MAX 16

/* State of a connection, at either end. Delays are stored as received, minus `base`, a constant that makes
 * them positive: the difference of two clocks is arbitrary modulo 2^32. */
struct connection {
    /* P̄ in 1024ths of a microsecond. */
    u64 average;
    u32 base;
    struct clocks clocks;
    /* The propagation buffer, newest first. */
    u32 delays[DELAYS_MAX];
    u32 arrived;
    /* A delay has arrived since the last classification; since the last acknowledgement of new data. */
    u8 has_new_delay;
    u8 delay_since_ack;
    u8 padding[2];
    /* As receiver: one-way delay of the newest segment with data, and whether there was one. */
    u32 measured_delay;
    u32 has_measured_delay;
    /* Counters of this connection. */
    u32 without_delay;
    u32 error;
    u32 congestion;
    u32 unclassified;
    /* Number of classified losses, and the newest of them. */
    u32 classified;
    struct classification classifications[CLASSIFICATIONS_MAX];
};

/* Initial value of stored delays: increases and decreases of up to 17 minutes stay positive. */
#define MIDDLE (1u << 30)

/* The clocks of sender and receiver have an unknown offset θ, so a reported delay d is the one-way delay plus
 * θ. The option in the acknowledgement contains its own send time by the receiver's clock; minus d, this is
 * the send time of the segment by the local clock, so the round-trip time r is known without the offset. The
 * one-way delay is between 0 and r, so θ is between d - r and d. Over all segments, the bounds are the
 * greatest d - r and the least d. (NTP also assumes that the one-way delay is half of the round-trip time:
 * RFC 5905, section 8.)
 */
inlined void update_clock_bounds(struct clocks *clocks, u32 delay, u32 round_trip)
{
    u32 least = delay - smaller(round_trip, MIDDLE / 2);
    clocks->min_offset = larger(clocks->min_offset, least);
    clocks->max_offset = smaller(clocks->max_offset, delay);
    if (clocks->min_offset > clocks->max_offset) {
        /* The clocks drift: the previous bounds are obsolete. */
        clocks->min_offset = least;
        clocks->max_offset = delay;
    }
}

/* Sender, figure 3, lines 1 and 2, and equation 1: P̄ = α P̄ + (1 - α) P_new, starting with the first delay. */
inlined void add_delay(struct connection *connection, const struct settings *parameters, u32 reported,
                        u32 round_trip)
{
    if (parameters->classifier == HALF_RTT)
        reported = round_trip / 2;
    if (!connection->arrived) {
        connection->base = reported - MIDDLE;
        connection->clocks.min_offset = 0;
        connection->clocks.max_offset = UNKNOWN;
    }
    u32 delay = reported - connection->base;
    update_clock_bounds(&connection->clocks, delay, round_trip);
    u64 newest = (u64)delay << 10;
    u32 alpha = parameters->alpha_permille;
    connection->average = connection->arrived ? (alpha * connection->average + (1000 - alpha) * newest) / 1000 : newest;
#pragma unroll
    for (int i = DELAYS_MAX - 1; i > 0; i--)
        connection->delays[i] = connection->delays[i - 1];
    connection->delays[0] = delay;
    connection->arrived += 1;
    connection->has_new_delay = 1;
    connection->delay_since_ack = 1;
}

enum cause { NONE = 0, ERROR, CONGESTION, UNCLASSIFIED };

/* Whether the bounds permit an offset of zero. */
inlined int clocks_agree(const struct connection *connection)
{
    u32 none = 0 - connection->base;
    return none >= connection->clocks.min_offset && none <= connection->clocks.max_offset;
}

/* Estimated offset of the receiver's clock, minus `base`: zero if the bounds permit it, otherwise the middle of
 * the bounds. */
inlined u32 offset(const struct connection *connection)
{
    if (clocks_agree(connection))
        return 0 - connection->base;
    return connection->clocks.min_offset + (connection->clocks.max_offset - connection->clocks.min_offset) / 2;
}

/* Figure 3, `predict_loss_cause`. Without a new delay a loss is not classified. */
inlined enum cause classify_loss(struct connection *connection, const struct settings *parameters)
{
    if (parameters->classifier == ALWAYS_CONGESTION)
        return CONGESTION;
    if (!connection->has_new_delay)
        return UNCLASSIFIED;
    if (parameters->classifier == ALWAYS_ERROR) {
        connection->has_new_delay = 0;
        return ERROR;
    }
    if (connection->arrived < parameters->list_length)
        return UNCLASSIFIED;
    connection->has_new_delay = 0;
    u64 ahead = offset(connection);
    /* Criterion I: the current delay is beyond β P̄. */
    u64 current = ((u64)connection->delays[0] - ahead) << 10;
    u64 average = connection->average > ahead << 10 ? connection->average - (ahead << 10) : 0;
    if (current * 1000 <= average * parameters->beta_permille)
        return ERROR;
    /* Criterion II: no delay in the list is below the one before it. */
#pragma unroll
    for (u32 i = 0; i + 1 < DELAYS_MAX; i++)
        if (i + 1 < parameters->list_length && connection->delays[i] < connection->delays[i + 1])
            return ERROR;
    return CONGESTION;
}
