// The scenarios bulk.toml and flows.toml in ns-3: bulk flows s -> r over one link.
//
// Usage: ns3 --key=value ...
//   rate_mbit rtt_ms queue   the link, both directions; queue in packets, without the one in transmission
//   loss                     probability that a data packet is lost at the end of the link
//   flows spread             number of flows; each starts at a random time up to `spread` seconds
//   hosts                    0: all flows between the two ends of the link. Otherwise that many hosts
//                            at each side share the flows, connected by fast links
//   sack                     1: selective acknowledgements
//   duration seed            simulated seconds; number of the random stream
//   scheduler                ns3::MapScheduler (default), ns3::HeapScheduler, ...
//
// Prints: data packets sent, payload in order in bytes.
//
// Traces, captures, queue disciplines and route computation are disabled.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// Assigns one /30 network to each link.
class Addresses
{
  public:
    Ipv4InterfaceContainer Assign(const NetDeviceContainer& devices)
    {
        m_helper.SetBase(Ipv4Address(m_next), "255.255.255.252");
        m_next += 4;
        const Ipv4InterfaceContainer interfaces = m_helper.Assign(devices);
        // Without a queue discipline packets wait in the drop-tail queue of the device, as in the other simulators.
        TrafficControlHelper().Uninstall(devices);
        return interfaces;
    }

  private:
    Ipv4AddressHelper m_helper;
    uint32_t m_next = Ipv4Address("10.0.0.0").Get();
};

void
DefaultRoute(Ptr<Node> node, Ipv4Address gateway, uint32_t interface)
{
    Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(gateway, interface);
}

} // namespace

int
main(int argc, char* argv[])
{
    double rate_mbit = 3;
    double rtt_ms = 100;
    uint32_t queue = 100;
    double loss = 0;
    uint32_t flows = 1;
    double spread = 0;
    uint32_t hosts = 0;
    bool sack = false;
    double duration = 100;
    uint32_t seed = 1;
    std::string scheduler = "ns3::MapScheduler";
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate_mbit", "rate of the link", rate_mbit);
    cmd.AddValue("rtt_ms", "round-trip propagation delay", rtt_ms);
    cmd.AddValue("queue", "packets that can wait", queue);
    cmd.AddValue("loss", "probability of loss", loss);
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("spread", "seconds over which the flows start", spread);
    cmd.AddValue("hosts", "hosts at each side, 0: the ends of the link", hosts);
    cmd.AddValue("sack", "selective acknowledgements", sack);
    cmd.AddValue("duration", "simulated seconds", duration);
    cmd.AddValue("seed", "number of the random stream", seed);
    cmd.AddValue("scheduler", "event list", scheduler);
    cmd.Parse(argc, argv);

    RngSeedManager::SetRun(seed);
    GlobalValue::Bind("SchedulerType", StringValue(scheduler));

    // Defaults of ns-2. (Without SACK, ns-3.37 has occasional spurious retransmissions.)
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000000)); // never give up
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    // One flow needs buffer space for its window; each of a thousand flows never reaches this size.
    const uint32_t buffer = flows == 1 ? 14600000 : 146000;
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));

    NodeContainer ends(2);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.SetRoutingHelper(Ipv4StaticRoutingHelper());
    internet.Install(ends);
    PointToPointHelper link;
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate_mbit * 1e6))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(rtt_ms * 500))));
    const NetDeviceContainer devices = link.Install(ends);
    Addresses addresses;
    const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    if (loss > 0)
    {
        auto losses = CreateObject<RateErrorModel>();
        losses->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        losses->SetRate(loss);
        DynamicCast<PointToPointNetDevice>(devices.Get(1))->SetReceiveErrorModel(losses);
    }

    std::vector<Ptr<Node>> senders(1, ends.Get(0));
    std::vector<Ptr<Node>> receivers(1, ends.Get(1));
    std::vector<Ipv4Address> targets(1, interfaces.GetAddress(1));
    if (hosts > 0)
    {
        senders.clear();
        receivers.clear();
        targets.clear();
        DefaultRoute(ends.Get(0), interfaces.GetAddress(1), 1);
        DefaultRoute(ends.Get(1), interfaces.GetAddress(0), 1);
        PointToPointHelper fast;
        fast.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
        fast.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
        fast.SetChannelAttribute("Delay", StringValue("0ms"));
        for (uint32_t i = 0; i < 2 * hosts; ++i)
        {
            auto host = CreateObject<Node>();
            internet.Install(host);
            const auto interfaces_of_host = addresses.Assign(fast.Install(ends.Get(i % 2), host));
            DefaultRoute(host, interfaces_of_host.GetAddress(0), 1);
            (i % 2 == 0 ? senders : receivers).push_back(host);
            if (i % 2 == 1)
            {
                targets.push_back(interfaces_of_host.GetAddress(1));
            }
        }
    }

    auto start = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        const size_t host = i % senders.size();
        const auto port = static_cast<uint16_t>(5000 + i);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(receivers[host]).Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(targets[host], port));
        source.SetAttribute("SendSize", UintegerValue(1460));
        source.Install(senders[host]).Start(Seconds(start->GetValue(0, spread)));
    }

    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    uint64_t bytes = 0;
    for (const auto& sink : sinks)
    {
        bytes += sink->GetTotalRx();
    }
    // All packets offered to the link, dropped packets included: data, and one SYN and one ACK for each flow.
    const auto device = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    const uint64_t offered = device->GetQueue()->GetTotalReceivedPackets() +
                             device->GetQueue()->GetTotalDroppedPacketsBeforeEnqueue();
    std::cout << offered - 2 * flows << ' ' << bytes << std::endl;
    Simulator::Destroy();
    return 0;
}
