/*
 * A link between two network interfaces, with a rate, a delay, a queue and faults:
 *
 *     link LEFT RIGHT [KEY=VALUE ...]
 *
 * rate (Mbit/s; 0: unlimited), delay (ms), queue (frames of each direction), seed, and the probability of each fault for
 * a frame with TCP over IPv4:
 *
 *     loss       the frame is dropped
 *     duplicate  it arrives twice
 *     reorder    it arrives up to 3 ms later than others
 *     corrupt    one bit behind the Ethernet header is inverted; checksums stay as they are
 *     truncate   the frame ends early, with the old or with a fitting length in its IP header
 *     options    TCP options are inserted: unknown, malformed, or selective acknowledgements of random data
 *     forge      sequence number, acknowledgement, window, flags or one bit of payload is changed, and the checksum fits
 *
 * The offloads of both interfaces must be off. The first line of the output is "ready"; SIGTERM ends the program, which
 * prints its counters as JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 16384
#define FRAMES_MAX 65536
#define REORDER_MAX 0.003
#define TCP_HEADER_MAX 60

struct parameter {
	const char *name;
	double value;
};

enum { RATE, DELAY, QUEUE, SEED, LOSS, DUPLICATE, REORDER, CORRUPT, TRUNCATE, OPTIONS, FORGE, PARAMETERS };

static struct parameter parameters[PARAMETERS] = {
	{ "rate", 0 }, { "delay", 0 }, { "queue", 1000 }, { "seed", 1 }, { "loss", 0 }, { "duplicate", 0 }, { "reorder", 0 },
	{ "corrupt", 0 }, { "truncate", 0 }, { "options", 0 }, { "forge", 0 },
};

struct frame {
	double at; /* time of arrival at the other interface */
	uint64_t order; /* of frames with the same time */
	size_t length;
	uint8_t *bytes;
};

/* Frames on the link in one direction, in a binary heap: the first one arrives next. */
struct direction {
	struct frame frames[FRAMES_MAX];
	size_t count;
	double free_at; /* time at which the transmitter has sent all frames before */
};

static struct direction directions[2];
static uint64_t counts[PARAMETERS], forwarded, queue_full;
static volatile sig_atomic_t is_stopping;

static void stop(int signal)
{
	(void)signal;
	is_stopping = 1;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static int occurs(int fault)
{
	int result = parameters[fault].value > 0 && drand48() < parameters[fault].value;

	counts[fault] += result;
	return result;
}

static size_t below(size_t limit)
{
	return (size_t)(drand48() * limit);
}

/* Packets */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 255;
}

static void add32(uint8_t *at, uint32_t value)
{
	uint32_t old;

	memcpy(&old, at, 4);
	old = htonl(ntohl(old) + value);
	memcpy(at, &old, 4);
}

static uint16_t checksum(uint32_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t at = 0; at + 1 < length; at += 2)
		sum += get16(bytes + at);
	if (length & 1)
		sum += bytes[length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* The IP header of a frame with an unfragmented TCP segment over IPv4, or null. */
static uint8_t *segment_of(struct frame *frame)
{
	uint8_t *ip = frame->bytes + ETH_HLEN;

	if (frame->length < ETH_HLEN + 40 || get16(frame->bytes + 12) != ETH_P_IP || ip[0] >> 4 != 4 || ip[9] != IPPROTO_TCP)
		return NULL;
	size_t header = (ip[0] & 15) * 4, length = get16(ip + 2);
	if (header < 20 || length < header + 20 || ETH_HLEN + length > frame->length || get16(ip + 6) & 0x3fff)
		return NULL;
	return ip;
}

/* Whether the checksum of TCP is correct: a new one must not hide an earlier fault. */
static int is_intact(const uint8_t *ip)
{
	size_t header = (ip[0] & 15) * 4, length = get16(ip + 2) - header;
	uint32_t pseudo = IPPROTO_TCP + length;

	for (size_t at = 12; at < 20; at += 2)
		pseudo += get16(ip + at);
	return checksum(0, ip, header) == 0 && checksum(pseudo, ip + header, length) == 0;
}

static void write_checksums(uint8_t *ip)
{
	size_t header = (ip[0] & 15) * 4, length = get16(ip + 2) - header;
	uint8_t *tcp = ip + header;
	uint32_t pseudo = IPPROTO_TCP + length;

	put16(ip + 10, 0);
	put16(ip + 10, checksum(0, ip, header));
	for (size_t at = 12; at < 20; at += 2)
		pseudo += get16(ip + at);
	put16(tcp + 16, 0);
	put16(tcp + 16, checksum(pseudo, tcp, length));
}

/* Faults */

static void corrupt(struct frame *frame)
{
	frame->bytes[ETH_HLEN + below(frame->length - ETH_HLEN)] ^= 1 << below(8);
}

static void truncate_frame(struct frame *frame, uint8_t *ip)
{
	size_t header = (ip[0] & 15) * 4;

	frame->length = ETH_HLEN + 1 + below(frame->length - ETH_HLEN - 1);
	if (frame->length >= ETH_HLEN + header && drand48() < 0.5) {
		put16(ip + 2, frame->length - ETH_HLEN);
		put16(ip + 10, 0);
		put16(ip + 10, checksum(0, ip, header));
	}
}

static void insert_options(struct frame *frame, uint8_t *ip)
{
	/* NOP, an experimental option (RFC 6994), lengths that do not fit, SACK (RFC 2018), end of the list. */
	static const uint8_t kinds[][4] = { { 1, 1, 1, 1 }, { 253, 4, 0, 1 }, { 253, 0, 0, 0 }, { 5, 200, 0, 0 }, { 1, 1, 5, 10 }, { 0, 0, 0, 0 } };
	uint8_t *tcp = ip + (ip[0] & 15) * 4;
	/* A host that stops reading the options of SYN at a malformed one has other parameters than its peer. */
	size_t count = tcp[13] & 2 ? 2 : sizeof kinds / sizeof *kinds;
	size_t offset = (tcp[12] >> 4) * 4, kind = below(count), extra = kind == 4 ? 12 : 4;
	size_t end = ip + get16(ip + 2) - frame->bytes;

	if (offset < 20 || offset + extra > TCP_HEADER_MAX || end + extra > FRAME_MAX)
		return;
	memmove(tcp + 20 + extra, tcp + 20, frame->bytes + end - tcp - 20);
	memcpy(tcp + 20, kinds[kind], 4);
	for (size_t at = 4; at < extra; at++)
		tcp[20 + at] = below(256);
	tcp[12] = (offset + extra) / 4 << 4 | (tcp[12] & 15);
	put16(ip + 2, get16(ip + 2) + extra);
	frame->length = end + extra;
	write_checksums(ip);
}

static void forge(uint8_t *ip)
{
	uint8_t *tcp = ip + (ip[0] & 15) * 4;
	size_t offset = (tcp[12] >> 4) * 4, payload = get16(ip + 2) - (tcp - ip) - offset;

	switch (below(5)) {
	case 0:
		add32(tcp + 4, drand48() < 0.5 ? below(100000) : (size_t)mrand48());
		break;
	case 1:
		add32(tcp + 8, drand48() < 0.5 ? below(100000) : (size_t)mrand48());
		break;
	case 2:
		put16(tcp + 14, below(65536));
		break;
	case 3:
		tcp[13] ^= 1 << below(6);
		break;
	default:
		if (payload > 0 && payload < FRAME_MAX)
			tcp[offset + below(payload)] ^= 1 << below(8);
	}
	write_checksums(ip);
}

/* The link */

static int is_before(const struct frame *one, const struct frame *other)
{
	return one->at < other->at || (one->at == other->at && one->order < other->order);
}

static void add(struct direction *direction, const struct frame *frame, double at)
{
	static uint64_t order;
	size_t place = direction->count;

	if (place >= FRAMES_MAX) {
		queue_full++;
		return;
	}
	struct frame copy = { at, order++, frame->length, malloc(frame->length) };
	memcpy(copy.bytes, frame->bytes, frame->length);
	direction->count++;
	for (; place > 0 && is_before(&copy, &direction->frames[(place - 1) / 2]); place = (place - 1) / 2)
		direction->frames[place] = direction->frames[(place - 1) / 2];
	direction->frames[place] = copy;
}

static struct frame take(struct direction *direction)
{
	struct frame first = direction->frames[0], last = direction->frames[--direction->count];
	size_t place = 0;

	for (size_t child = 1; child < direction->count; child = 2 * place + 1) {
		if (child + 1 < direction->count && is_before(&direction->frames[child + 1], &direction->frames[child]))
			child++;
		if (!is_before(&direction->frames[child], &last))
			break;
		direction->frames[place] = direction->frames[child];
		place = child;
	}
	direction->frames[place] = last;
	return first;
}

static void accept_frame(struct direction *direction, struct frame *frame)
{
	double time = now(), rate = parameters[RATE].value * 1e6 / 8, delay = parameters[DELAY].value * 1e-3;
	uint8_t *ip = segment_of(frame);

	if (direction->free_at < time)
		direction->free_at = time;
	/* Frames that wait for the transmitter; all others are on their way. */
	if (rate > 0 && (direction->free_at - time) * rate > parameters[QUEUE].value * 1500) {
		queue_full++;
		return;
	}
	if (rate > 0)
		direction->free_at += frame->length / rate;
	double at = direction->free_at + delay;
	if (ip && occurs(LOSS))
		return;
	if (ip && is_intact(ip) && occurs(OPTIONS))
		insert_options(frame, ip);
	if (ip && is_intact(ip) && occurs(FORGE))
		forge(ip);
	if (ip && occurs(DUPLICATE))
		add(direction, frame, at + drand48() * REORDER_MAX);
	if (ip && occurs(CORRUPT))
		corrupt(frame);
	else if (ip && occurs(TRUNCATE))
		truncate_frame(frame, ip);
	if (ip && occurs(REORDER))
		at += drand48() * REORDER_MAX;
	add(direction, frame, at);
}

static int open_interface(const char *name)
{
	int one = 1, size = 16 << 20, file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name) };
	struct packet_mreq all = { .mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC };

	if (file < 0 || !address.sll_ifindex || bind(file, (struct sockaddr *)&address, sizeof address) ||
	    setsockopt(file, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
	    setsockopt(file, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all)) {
		perror(name);
		exit(2);
	}
	setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
	return file;
}

static void set_parameter(const char *text)
{
	const char *equals = strchr(text, '=');

	for (int number = 0; equals && number < PARAMETERS; number++) {
		const char *name = parameters[number].name;
		if (strlen(name) == (size_t)(equals - text) && !strncmp(name, text, equals - text)) {
			parameters[number].value = atof(equals + 1);
			return;
		}
	}
	fprintf(stderr, "%s: expected one of", text);
	for (int number = 0; number < PARAMETERS; number++)
		fprintf(stderr, " %s=", parameters[number].name);
	fprintf(stderr, "\n");
	exit(2);
}

static void wait_for_frames(const int files[2])
{
	struct pollfd polls[2] = { { files[0], POLLIN, 0 }, { files[1], POLLIN, 0 } };
	double left = 1;

	for (int number = 0; number < 2; number++) {
		struct direction *direction = &directions[number];
		double due = direction->count ? direction->frames[0].at - now() : left;
		left = due < left ? due : left;
	}
	left = left < 0 ? 0 : left;
	struct timespec time = { (time_t)left, (long)((left - (time_t)left) * 1e9) };
	ppoll(polls, 2, &time, NULL);
}

int main(int count, char **words)
{
	static uint8_t buffer[FRAME_MAX + TCP_HEADER_MAX];

	if (count < 3) {
		fprintf(stderr, "usage: link LEFT RIGHT [KEY=VALUE ...]\n");
		return 2;
	}
	for (int number = 3; number < count; number++)
		set_parameter(words[number]);
	srand48((long)parameters[SEED].value);
	signal(SIGTERM, stop);
	prctl(PR_SET_TIMERSLACK, 1000);
	int files[2] = { open_interface(words[1]), open_interface(words[2]) };
	puts("ready");
	fflush(stdout);
	while (!is_stopping) {
		wait_for_frames(files);
		for (int from = 0; from < 2; from++) {
			struct frame frame = { 0, 0, 0, buffer };
			ssize_t length;
			for (int batch = 0; batch < 64 && (length = recv(files[from], buffer, FRAME_MAX, 0)) > 0; batch++) {
				frame.length = length;
				accept_frame(&directions[from], &frame);
			}
		}
		for (int from = 0; from < 2; from++) {
			struct direction *direction = &directions[from];
			while (direction->count && direction->frames[0].at <= now()) {
				struct frame frame = take(direction);
				forwarded += send(files[1 - from], frame.bytes, frame.length, 0) > 0;
				free(frame.bytes);
			}
		}
	}
	printf("{\"forwarded\": %llu, \"queue_full\": %llu", (unsigned long long)forwarded, (unsigned long long)queue_full);
	for (int number = LOSS; number < PARAMETERS; number++)
		printf(", \"%s\": %llu", parameters[number].name, (unsigned long long)counts[number]);
	printf("}\n");
	return 0;
}
