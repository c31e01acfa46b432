/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * A classifier of traffic control: drops UDP datagrams to port 9, passes all other packets, counts both.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct counters {
    u64 passed;
    u64 dropped;
};

struct {
    int (*type)[2]; /* BPF_MAP_TYPE_ARRAY */
    u32 *key;
    struct counters *value;
    int (*max_entries)[1];
} counters SEC(".maps");

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const load_bytes)(const void *packet, u32 offset, void *to, u32 length) = (void *)26;

/* Offsets in an Ethernet frame with an IPv4 header of 20 bytes. */
enum { PROTOCOL = 14 + 9, DESTINATION_PORT = 14 + 20 + 2, UDP = 17 };
/* TCX_PASS and TCX_DROP, <linux/bpf.h>. */
enum { PASS = 0, DROP = 2 };

SEC("classifier/discard")
int discard(void *packet) {
    u32 zero = 0;
    u8 protocol = 0;
    u8 port[2] = {0, 0};
    struct counters *count = map_lookup(&counters, &zero);
    if (!count)
        return PASS;
    load_bytes(packet, PROTOCOL, &protocol, sizeof protocol);
    load_bytes(packet, DESTINATION_PORT, port, sizeof port);
    if (protocol == UDP && port[0] == 0 && port[1] == 9) {
        count->dropped += 1;
        return DROP;
    }
    count->passed += 1;
    return PASS;
}
