// The scenarios bulk.toml and flows.toml in htsim (github.com/Broadcom/csg-htsim): bulk flows over one link.
//
// Usage: htsim key=value ...
//   rate_mbit rtt_ms queue   the link, both directions; queue in packets, without the one in transmission
//   loss                     probability that a data packet is lost at the end of the link
//   flows spread             number of flows; each starts at a random time up to `spread` seconds
//   duration seed            simulated seconds; seed of the random numbers
//
// Prints: data packets sent, payload in order in bytes. htsim itself prints a line for each retransmission timeout on
// standard output, which costs a third of its time; here the line is not written.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"
#include "tcppacket.h"

namespace
{

const int PACKET = 1500;
const int HEADERS = 40;

// Loses data packets at random, after the link.
class Loss : public PacketSink
{
  public:
    Loss(double probability) : m_probability(probability), m_name("loss") {}

    void receivePacket(Packet& packet) override
    {
        if (packet.size() > HEADERS && drand() < m_probability)
            packet.free();
        else
            packet.sendOn();
    }

    const string& nodename() override { return m_name; }

  private:
    double m_probability;
    string m_name;
};

double
value(int argc, char* argv[], const std::string& key, double otherwise)
{
    for (int i = 1; i < argc; ++i)
    {
        const std::string argument(argv[i]);
        if (argument.compare(0, key.size() + 1, key + "=") == 0)
            return std::atof(argument.c_str() + key.size() + 1);
    }
    return otherwise;
}

} // namespace

int
main(int argc, char* argv[])
{
    const double rate_mbit = value(argc, argv, "rate_mbit", 3);
    const double rtt_ms = value(argc, argv, "rtt_ms", 100);
    const double queue = value(argc, argv, "queue", 100);
    const double loss = value(argc, argv, "loss", 0);
    const int flows = static_cast<int>(value(argc, argv, "flows", 1));
    const double spread = value(argc, argv, "spread", 0);
    const double duration = value(argc, argv, "duration", 100);
    srand(static_cast<unsigned>(value(argc, argv, "seed", 1)));

    // The lines of htsim cost time and are not part of the result.
    std::FILE* results = fdopen(dup(STDOUT_FILENO), "w");
    std::cout.setstate(std::ios::failbit);
    if (!results || !std::freopen("/dev/null", "w", stdout))
        return 1;

    Packet::set_packet_size(PACKET);
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(duration));
    // The queue of htsim includes the packet in transmission.
    const mem_b room = static_cast<mem_b>((queue + 1) * PACKET);
    Queue forward(speedFromMbps(rate_mbit), room, events, nullptr);
    Queue reverse(speedFromMbps(rate_mbit), room, events, nullptr);
    Pipe there(timeFromMs(rtt_ms / 2), events);
    Pipe back(timeFromMs(rtt_ms / 2), events);
    Loss losses(loss);
    TcpRtxTimerScanner timers(timeFromMs(10), events);

    std::vector<TcpSrc*> sources;
    std::vector<TcpSink*> sinks;
    for (int i = 0; i < flows; ++i)
    {
        auto source = new TcpSrc(nullptr, nullptr, events);
        auto sink = new TcpSink();
        timers.registerTcp(*source);
        source->set_ssthresh(0xffffffff);
        source->_maxcwnd = 0x7fffffff;
        auto out = new Route();
        out->push_back(&forward);
        out->push_back(&there);
        if (loss > 0)
            out->push_back(&losses);
        out->push_back(sink);
        auto in = new Route();
        in->push_back(&reverse);
        in->push_back(&back);
        in->push_back(source);
        source->connect(*out, *in, *sink, timeFromSec(drand() * spread));
        sources.push_back(source);
        sinks.push_back(sink);
    }
    while (events.doNextEvent())
    {
    }
    double packets = 0;
    double bytes = 0;
    for (int i = 0; i < flows; ++i)
    {
        // `_packets_sent` counts bytes, retransmissions included.
        packets += static_cast<double>(sources[i]->_packets_sent) / sources[i]->_mss;
        bytes += static_cast<double>(sinks[i]->_cumulative_ack) * (PACKET - HEADERS) / PACKET;
    }
    std::fprintf(results, "%.0f %.0f\n", packets, bytes);
    std::fflush(results);
    // Destructors of a network in operation are not needed.
    std::_Exit(0);
}
