/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Division of work between a proxy in user space and the kernel's bridge (`Lease` of the loader).
 *
 * A proxy receives the TCP packets of two bridged devices over packet sockets, and sends them over the
 * other device. `withhold` drops the same packets before the bridge, but only while the proxy renews its
 * lease: if the proxy hangs, the bridge forwards them. `copy` lets the packet sockets receive exactly the
 * packets that are dropped, so that each packet is forwarded once.
 *
 * `reset` resets connections for which a proxy has acknowledged data that it had not yet delivered when
 * it died or hung: without the data, both hosts would wait for each other.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inlined static inline __attribute__((always_inline))

/* --- the kernel's interface (<linux/bpf.h>) ------------------------------------------------------ */

/* The first fields of `struct __sk_buff`. */
struct packet {
    u32 len;
    u32 pkt_type;
    u32 mark;
    u32 queue_mapping;
    u32 protocol;
    u32 vlan_present;
    u32 vlan_tci;
    u32 vlan_proto;
    u32 priority;
    u32 ingress_ifindex;
    u32 ifindex;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const clock_ns)(void) = (void *)5;
static long (*const store_bytes)(void *packet, u32 offset, const void *from, u32 length, u64 flags) = (void *)9;
static long (*const adjust_ip_checksum)(void *packet, u32 offset, u64 from, u64 to, u64 size) = (void *)10;
static long (*const adjust_checksum)(void *packet, u32 offset, u64 from, u64 to, u64 size) = (void *)11;
static long (*const send_copy)(void *packet, u32 interface, u64 flags) = (void *)13;
static long (*const redirect)(u32 interface, u64 flags) = (void *)23;
static long (*const load_bytes)(const void *packet, u32 offset, void *to, u32 length) = (void *)26;

/* Results of a classifier: the next program or, after the last, the kernel's path. */
enum { NEXT = -1, DROP = 2 };
/* Results of a socket filter. */
enum { NOTHING = 0, WHOLE_PACKET = -1 };

/* --- maps, which the loader makes ---------------------------------------------------------------- */

struct lease {
    /* End of the lease by the monotonic clock. */
    u64 until_ns;
    /* The process that holds the lease, and its connections below. */
    u64 owner;
    /* The two devices. */
    u32 interfaces[2];
    /* Whether there are connections of other owners. */
    u32 has_abandoned;
    /* Addresses of this machine, each followed by two zero bytes. */
    u32 local_count;
    u64 local[3];
};

struct lease_counters {
    u64 withheld;
    u64 resets;
    u64 fragments;
};

/* Packets of a connection in one direction. */
struct flow {
    /* IPv4 addresses are mapped to IPv6 (RFC 4291, section 2.5.5.2). */
    u8 source[16];
    u8 destination[16];
    u8 source_port[2];
    u8 destination_port[2];
    /* Identifiers of the outer and the inner VLAN; TAGGED is set in those of a tag. */
    u16 vlans[2];
};

/* Kept by the loader for its own use, apart from the owner. */
struct flow_protection {
    u64 owner;
    /* A sequence number that the sender has used. */
    u32 seq;
    u8 source[6];
    u8 destination[6];
    /* The device at which packets of the sender arrive. */
    u32 interface;
    u32 padding;
};

struct {
    u32 *key;
    struct lease *value;
} lease SEC(".maps");

struct {
    u32 *key;
    struct lease_counters *value;
} counters SEC(".maps");

struct {
    struct flow *key;
    struct flow_protection *value;
} flows SEC(".maps");

inlined struct lease *the_lease(void)
{
    u32 zero = 0;
    return map_lookup(&lease, &zero);
}

inlined struct lease_counters *the_counters(void)
{
    u32 zero = 0;
    return map_lookup(&counters, &zero);
}

inlined int is_held(const struct lease *lease) { return clock_ns() < lease->until_ns; }

/* --- headers ------------------------------------------------------------------------------------- */

enum { ETHERNET = 14, TAG = 4, IPV4 = 20, IPV6 = 40, TCP_HEADER = 20 };
enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_VLAN = 0x8100, TYPE_SERVICE_VLAN = 0x88a8 };
enum { ICMP = 1, TCP = 6, FRAGMENT_HEADER = 44, ICMPV6 = 58 };
/* RFC 792, RFC 4443: messages that report the MTU of a path. */
enum { UNREACHABLE = 3, PACKET_TOO_BIG = 2 };
enum { TAGGED = 0x1000, VLAN_IDENTIFIER = 0x0fff };

/* Headers of an IP packet. */
struct headers {
    /* From the destination address on: Ethernet, possibly a tag, and the begin of the IP header. */
    u8 head[ETHERNET + TAG + IPV4] __attribute__((aligned(8)));
    u8 version;
    /* FRAGMENT_HEADER for a fragment of IPv6. */
    u8 protocol;
    u16 vlans[2];
    /* IPv4: more fragments, or an offset. */
    u32 is_fragment;
    u32 network;
    u32 transport;
};

/* The kernel has moved the outermost VLAN tag from the frame into `vlan_tci`; one more may follow the
 * addresses. Packets with extension headers of IPv6 are not found. */
inlined int find_headers(const struct packet *packet, struct headers *found)
{
    const u8 *head = found->head, *ip = head + ETHERNET;
    u16 type;

    if (load_bytes(packet, 0, found->head, sizeof found->head))
        return 0;
    found->network = ETHERNET;
    found->vlans[0] = packet->vlan_present ? TAGGED | (packet->vlan_tci & VLAN_IDENTIFIER) : 0;
    found->vlans[1] = 0;
    found->is_fragment = 0;
    type = (u16)(head[12] << 8 | head[13]);
    if (type == TYPE_VLAN || type == TYPE_SERVICE_VLAN) {
        found->vlans[1] = (u16)(TAGGED | ((head[14] & 0x0f) << 8 | head[15]));
        type = (u16)(head[16] << 8 | head[17]);
        found->network += TAG;
        ip += TAG;
    }
    if (type == TYPE_IPV4) {
        found->version = 4;
        found->protocol = ip[9];
        found->transport = found->network + (ip[0] & 0x0f) * 4;
        found->is_fragment = ip[6] & 0x3f || ip[7];
        return 1;
    }
    if (type == TYPE_IPV6) {
        found->version = 6;
        found->protocol = ip[6];
        found->transport = found->network + IPV6;
        return 1;
    }
    return 0;
}

/* Whether the destination is an address of this machine. */
inlined int is_local(const struct lease *lease, const struct headers *found)
{
    u64 destination;

    __builtin_memcpy(&destination, found->head, sizeof destination);
    destination &= 0xffffffffffff;
    for (u32 index = 0; index < 3; index++)
        if (index < lease->local_count && lease->local[index] == destination)
            return 1;
    return 0;
}

/* --- division of packets ------------------------------------------------------------------------- */

enum decision { KERNEL, FRAGMENT, BOTH, PROXY };

/* Who receives the packet. Group addresses and this machine's own addresses concern its own protocols, and
 * all but TCP needs no proxy. Messages about the path MTU reach the hosts by the kernel's bridge; the proxy
 * reads them as well. Fragments of TCP, which a proxy cannot serve, are counted. */
inlined enum decision decide(const struct packet *packet)
{
    const struct lease *lease = the_lease();
    struct headers found;
    u8 type;

    if (!lease || !is_held(lease) || !find_headers(packet, &found))
        return KERNEL;
    if (found.head[0] & 1 || is_local(lease, &found))
        return KERNEL;
    if (found.version == 6 && found.protocol == FRAGMENT_HEADER)
        return load_bytes(packet, found.transport, &type, sizeof type) || type != TCP ? KERNEL : FRAGMENT;
    if (found.is_fragment)
        return found.protocol == TCP ? FRAGMENT : KERNEL;
    if (found.protocol == TCP)
        return PROXY;
    if (found.protocol != ICMP && found.protocol != ICMPV6)
        return KERNEL;
    if (load_bytes(packet, found.transport, &type, sizeof type))
        return KERNEL;
    if (found.protocol == ICMP && found.version == 4 && type == UNREACHABLE)
        return BOTH;
    if (found.protocol == ICMPV6 && found.version == 6 && type == PACKET_TOO_BIG)
        return BOTH;
    return KERNEL;
}

SEC("classifier/withhold")
int withhold(struct packet *packet)
{
    struct lease_counters *count;
    enum decision decision = decide(packet);

    if (decision != PROXY && decision != FRAGMENT)
        return NEXT;
    count = the_counters();
    if (count)
        __sync_fetch_and_add(decision == PROXY ? &count->withheld : &count->fragments, 1);
    return decision == PROXY ? DROP : NEXT;
}

SEC("socket/copy")
int copy(struct packet *packet) { return decide(packet) < BOTH ? NOTHING : WHOLE_PACKET; }

/* --- reset of abandoned connections -------------------------------------------------------------- */

enum { TTL = 64 };
/* Positions and control bits of the TCP header (RFC 9293, section 3.1). */
enum { SEQ = 4, ACK_NUMBER = 8, OFFSET_AND_FLAGS = 12, CHECKSUM = 16 };
enum { RST = 0x04, ACK = 0x10 };

inlined int find_flow(const struct packet *packet, const struct headers *found, const u8 *tcp, struct flow *flow)
{
    __builtin_memset(flow, 0, sizeof *flow);
    if (found->version == 4) {
        flow->source[10] = flow->source[11] = 0xff;
        flow->destination[10] = flow->destination[11] = 0xff;
        if (load_bytes(packet, found->network + 12, flow->source + 12, 4) ||
            load_bytes(packet, found->network + 16, flow->destination + 12, 4))
            return 0;
    } else if (load_bytes(packet, found->network + 8, flow->source, 32)) {
        return 0;
    }
    __builtin_memcpy(flow->source_port, tcp, 4);
    flow->vlans[0] = found->vlans[0];
    flow->vlans[1] = found->vlans[1];
    return 1;
}

inlined void reverse(const struct flow *flow, struct flow *reversed)
{
    __builtin_memcpy(reversed->source, flow->destination, 16);
    __builtin_memcpy(reversed->destination, flow->source, 16);
    __builtin_memcpy(reversed->source_port, flow->destination_port, 2);
    __builtin_memcpy(reversed->destination_port, flow->source_port, 2);
    reversed->vlans[0] = flow->vlans[0];
    reversed->vlans[1] = flow->vlans[1];
}

/* Replaces a field of the TCP header, and corrects the checksum. */
inlined void replace(struct packet *packet, const struct headers *found, u32 at, u32 from, u32 to, u32 size)
{
    adjust_checksum(packet, found->transport + CHECKSUM, from, to, size);
    store_bytes(packet, found->transport + at, &to, size, 0);
}

/* Turns the packet into a reset from its receiver: RFC 9293, section 3.10.7.1, "SEQ=SEG.ACK, CTL=RST".
 * Exchanged addresses and ports leave all checksums as they are. */
inlined void answer_with_reset(
    struct packet *packet, const struct headers *found, const struct flow *flow, const u8 *tcp)
{
    u32 seq, ack;
    u16 before, after;

    store_bytes(packet, 0, found->head + 6, 6, 0);
    store_bytes(packet, 6, found->head, 6, 0);
    if (found->version == 4) {
        u8 ttl[2] = {TTL, TCP};
        store_bytes(packet, found->network + 12, flow->destination + 12, 4, 0);
        store_bytes(packet, found->network + 16, flow->source + 12, 4, 0);
        if (!load_bytes(packet, found->network + 8, &before, 2)) {
            __builtin_memcpy(&after, ttl, 2);
            adjust_ip_checksum(packet, found->network + 10, before, after, 2);
            store_bytes(packet, found->network + 8, ttl, 2, 0);
        }
    } else {
        u8 hop_limit = TTL;
        store_bytes(packet, found->network + 7, &hop_limit, 1, 0);
        store_bytes(packet, found->network + 8, flow->destination, 16, 0);
        store_bytes(packet, found->network + 24, flow->source, 16, 0);
    }
    store_bytes(packet, found->transport, flow->destination_port, 2, 0);
    store_bytes(packet, found->transport + 2, flow->source_port, 2, 0);
    __builtin_memcpy(&seq, tcp + SEQ, 4);
    __builtin_memcpy(&ack, tcp + ACK_NUMBER, 4);
    replace(packet, found, SEQ, seq, ack, 4);
    replace(packet, found, ACK_NUMBER, ack, 0, 4);
    __builtin_memcpy(&before, tcp + OFFSET_AND_FLAGS, 2);
    after = before;
    ((u8 *)&after)[1] = RST;
    replace(packet, found, OFFSET_AND_FLAGS, before, after, 2);
}

/* Distance of a sequence number that no window contains: windows have at most 30 bits (RFC 7323,
 * section 2.3). */
#define OUTSIDE_WINDOW 0x40000000u

/* A packet of an abandoned connection: its sender is reset. Its receiver gets the packet with a sequence
 * number outside of the window, which it answers with an acknowledgement (RFC 9293, section 3.10.7.4); that
 * answer comes here and resets the receiver. No host accepts data that follow the lost ones. */
SEC("classifier/reset")
int reset(struct packet *packet)
{
    const struct lease *lease = the_lease();
    const struct flow_protection *protection;
    struct lease_counters *count;
    struct headers found;
    struct flow flow, reversed;
    u8 tcp[TCP_HEADER];
    u32 seq, outside;
    int held;

    if (!lease)
        return NEXT;
    held = is_held(lease);
    if (held && !lease->has_abandoned)
        return NEXT;
    if (!find_headers(packet, &found) || found.is_fragment || found.protocol != TCP)
        return NEXT;
    if (load_bytes(packet, found.transport, tcp, sizeof tcp) || !find_flow(packet, &found, tcp, &flow))
        return NEXT;
    protection = map_lookup(&flows, &flow);
    if (!protection || (held && protection->owner == lease->owner) || tcp[13] & RST)
        return NEXT;
    if (!(tcp[13] & ACK)) {
        /* SYN: a new connection with the same ports. */
        reverse(&flow, &reversed);
        map_delete(&flows, &flow);
        map_delete(&flows, &reversed);
        return NEXT;
    }
    __builtin_memcpy(&seq, tcp + SEQ, 4);
    outside = __builtin_bswap32(__builtin_bswap32(seq) - OUTSIDE_WINDOW);
    replace(packet, &found, SEQ, seq, outside, 4);
    send_copy(packet, lease->interfaces[packet->ifindex == lease->interfaces[0]], 0);
    replace(packet, &found, SEQ, outside, seq, 4);
    answer_with_reset(packet, &found, &flow, tcp);
    count = the_counters();
    if (count)
        __sync_fetch_and_add(&count->resets, 1);
    return redirect(packet->ifindex, 0);
}
