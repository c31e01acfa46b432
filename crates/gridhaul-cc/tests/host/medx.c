/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Runs the congestion control of gh_medx on a simulated socket. Reads senders from standard input, one line of
 * commands each:
 *
 *   w=N t=N o=N    set the window, the threshold, the segments in flight
 *   d=N            receive a delay of N milliseconds, with a round-trip time that is 10 ms longer
 *   c=N            give the socket settings of its own, with classifier N
 *   s=N            call `ssthresh`, then `set_state` with state N
 *   n=N            call `set_state` with state N only
 *   q=N            enter state N without running the program: the threshold is unchanged
 *   k=0            acknowledge new data
 *   a=N            acknowledge N segments outside of recovery
 *   u=0            undo a spurious loss
 *
 * Writes window and threshold, the numbers of losses classified as error, as congestion, and not classified,
 * the number of timeouts, and the number of corrections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/types.h"

/* --- substitutes for bpf/target.h --------------------------------------------------------------- */

#define FIELDS_BY_NAME
#define FIELDS_END
#define bit_of(pointer, field) ((pointer)->field)

static void *map_lookup(void *map, const void *key);
static void *storage_of(void *map, void *sk, void *initial, u64 flags);
static u64 clock_ns(void) { return 0; }

#include "../../bpf/medx.bpf.c"

static struct {
    struct settings settings;
    struct counters counters;
    struct connection connection;
    struct socket_settings own_settings;
    u8 has_own_settings;
    struct tcp_sock tcp;
} host;

static void *map_lookup(void *map, unused const void *key)
{
    return map == (void *)&settings ? (void *)&host.settings : (void *)&host.counters;
}

static void *storage_of(void *map, unused void *sk, unused void *initial, unused u64 flags)
{
    if (map == (void *)&own_settings)
        return host.has_own_settings ? &host.own_settings : 0;
    return &host.connection;
}

/* --- the calls of the kernel -------------------------------------------------------------------- */

static u64 context[3] = {(u64)&host.tcp};

static void notify(u8 state)
{
    context[1] = state;
    medx_set_state(context);
    host.tcp.inet_conn.icsk_ca_state = state;
}

static void begin(u8 state)
{
    host.tcp.prior_cwnd = host.tcp.snd_cwnd;
    host.tcp.snd_ssthresh = medx_ssthresh(context);
    /* `tcp_enter_loss`, with nothing in flight any more. */
    if (state == LOSS)
        host.tcp.snd_cwnd = 1;
    notify(state);
}

static void execute(char word, u32 number)
{
    switch (word) {
    case 'w':
        host.tcp.snd_cwnd = number;
        break;
    case 't':
        host.tcp.snd_ssthresh = number;
        break;
    case 'o':
        host.tcp.packets_out = number;
        break;
    case 'd':
        add_delay(&host.connection, &host.settings, 1000 * number, 1000 * number + 10000);
        break;
    case 'c':
        host.has_own_settings = 1;
        host.own_settings.own = host.settings;
        host.own_settings.own.classifier = number;
        break;
    case 's':
        begin(number);
        break;
    case 'n':
        notify(number);
        break;
    case 'q':
        host.tcp.prior_cwnd = host.tcp.snd_cwnd;
        host.tcp.inet_conn.icsk_ca_state = number;
        break;
    case 'k':
        medx_pkts_acked(context);
        break;
    case 'a':
        context[2] = number;
        host.tcp.is_cwnd_limited = 1;
        medx_cong_avoid(context);
        break;
    case 'u':
        host.tcp.snd_cwnd = medx_undo_cwnd(context);
        break;
    default:
        exit(1);
    }
}

int main(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        memset(&host, 0, sizeof(host));
        host.settings = (struct settings){.alpha_permille = 500, .beta_permille = 1200, .list_length = 4};
        host.tcp.snd_cwnd = 10;
        host.tcp.snd_ssthresh = UNLIMITED;
        host.tcp.snd_cwnd_clamp = -1;
        medx_init(context);
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
            execute(word[0], strtoul(word + 2, NULL, 10));
        const struct counters *all = &host.counters;
        printf("%u %u %llu %llu %llu %llu %llu\n", host.tcp.snd_cwnd, host.tcp.snd_ssthresh, all->error,
               all->congestion, all->unclassified, all->timeouts, all->corrected);
    }
    return 0;
}
