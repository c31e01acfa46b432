/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The TCP option of MEDX, as in gridhaul's simulator (`OneWayDelay` in
 * crates/gridhaul-core/src/tcp/segment.rs): an experimental kind (RFC 4727, section 7.3) with an
 * identifier (RFC 6994, section 3), the send time of the segment, and the one-way delay of the newest segment
 * with data received; both in microseconds, in network byte order.
 */
#pragma once

#include "kernel.h"

#define OPTION_KIND 253
#define OPTION_LEN 12
#define OPTION_ID 0x4d58 /* "MX" */

struct option {
    u8 kind;
    u8 len;
    u16 identifier;
    u32 sent_at_us;
    u32 delay_us;
};

#define swap16 __builtin_bswap16
#define swap32 __builtin_bswap32
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the loader gives programs to little-endian kernels only"
#endif

/* --- callbacks for the connections of a control group (stable interface) ------------------------ */

struct bpf_sock_ops {
    u32 op;
    u32 args[4];
    u32 addresses[13];
    u32 is_fullsock;
    u32 snd_cwnd;
    u32 srtt_us;
    u32 callbacks; /* enabled callbacks: CALL_* */
    u32 state;
    u32 rest[19];
    u64 bytes_received;
    u64 bytes_acked;
    struct bpf_sock *sk;
    void *skb_data;
    void *skb_data_end;
    u32 skb_len;
    u32 skb_tcp_flags;
};
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, sk) == 184, "as in linux/bpf.h");
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, skb_len) == 208, "as in linux/bpf.h");

/* Callbacks (`op`). */
enum {
    CONNECTING = 3,
    ESTABLISHED_HERE = 4,
    ESTABLISHED_THERE = 5,
    LISTENING = 11,
    OPTION_ARRIVED = 13,
    OPTION_LENGTH = 14,
    OPTION_WRITE = 15,
};
/* Called for segments with an option unknown to the kernel, and before a segment is sent. */
#define CALL_FOR_UNKNOWN (1 << 5)
#define CALL_TO_WRITE (1 << 6)

static long (*const get_option)(void *ops, int level, int name, void *value, int len) = (void *)57;
static long (*const set_callbacks)(void *ops, int flags) = (void *)59;
static long (*const find_in_header)(void *ops, void *found, u32 len, u64 flags) = (void *)142;
static long (*const write_to_header)(void *ops, const void *from, u32 len, u64 flags) = (void *)143;
static long (*const reserve_in_header)(void *ops, u32 len, u64 flags) = (void *)144;

#define LEVEL_TCP 6
#define TCP_CONGESTION 13
