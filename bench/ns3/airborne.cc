// The AeroTP papers' TCP scenario as scenarios/ns3-airborne.toml has it, for ns-3.37 and 3.44: comma-separated values, a
// line a run. The file `more-runs` makes reference/ns3/s1_more_runs.csv with it.
//   airborne PROTOCOL LATENCY BER RUNS [MIN_RTO]       PROTOCOL: newreno, newreno-sack, cubic; MIN_RTO: 1s
// The build line is in the file `build`.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5000;
constexpr uint32_t BUFFER_BYTES = 4 << 20;
constexpr uint32_t WRITE_BYTES = 1472;

// What one run counts.
struct Counters
{
    std::vector<Time> sent;      // when the source sent each write
    uint64_t delivered = 0;      // octets that the sink got
    uint64_t onTheLink = 0;      // octets on the middle link, both ways, IP and PPP included
    double delays = 0;           // seconds, summed over the writes that arrived whole
    uint64_t whole = 0;          // writes that arrived whole
    Time first;                  // when the first octets arrived
    Time last;                   // when the last octets arrived
    bool gaveUp = false;
    uint32_t timeouts = 0;       // how often the sender entered the state after a timeout
};

Counters counters;

void
Sent(Ptr<const Packet>)
{
    counters.sent.push_back(Simulator::Now());
}

void
Received(Ptr<const Packet> packet, const Address&)
{
    const Time now = Simulator::Now();
    if (counters.delivered == 0)
    {
        counters.first = now;
    }
    counters.last = now;
    counters.delivered += packet->GetSize();
    for (; (counters.whole + 1) * WRITE_BYTES <= counters.delivered; ++counters.whole)
    {
        counters.delays += (now - counters.sent.at(counters.whole)).GetSeconds();
    }
}

void
OnTheLink(Ptr<const Packet> packet)
{
    counters.onTheLink += packet->GetSize();
}

void
GaveUp(Ptr<Socket>)
{
    counters.gaveUp = true;
}

void
Closed(Ptr<Socket>)
{
}

void
CongestionState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state)
{
    counters.timeouts += state == TcpSocketState::CA_LOSS;
}

void
WatchSocket(Ptr<OnOffApplication> source)
{
    source->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&CongestionState));
    source->GetSocket()->SetCloseCallbacks(MakeCallback(&Closed), MakeCallback(&GaveUp));
}

// The TCP of scenarios/ns3-airborne.toml. What is not named is ns-3's default: Nagle off, a first timeout of
// 3 s for SYNs, at least 1 s for data, 6 tries, acknowledgements of two segments or after 200 ms.
void
SetUpTcp(const std::string& protocol, const std::string& minRto)
{
    const bool cubic = protocol == "cubic";
    const bool sack = protocol != "newreno";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(cubic ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(cubic ? TcpPrrRecovery::GetTypeId() : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", StringValue(minRto));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER_BYTES));
}

NetDeviceContainer
Link(Ptr<Node> from, Ptr<Node> to, const std::string& rate, const std::string& delay, const char* network)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100p"));
    NetDeviceContainer devices = link.Install(from, to);
    Ipv4AddressHelper addresses(network, "255.255.255.0");
    addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    return devices;
}

void
LoseAt(Ptr<NetDevice> receiver, double rate, int64_t stream)
{
    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetRate(rate);
    errors->SetUnit(RateErrorModel::ERROR_UNIT_BIT);
    errors->AssignStreams(stream);
    receiver->SetAttribute("ReceiveErrorModel", PointerValue(errors));
}

void
Run(const std::string& latency, double bitErrorRate, uint32_t run)
{
    counters = Counters();
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(run);
    NodeContainer nodes(4);
    InternetStackHelper().Install(nodes);
    Link(nodes.Get(0), nodes.Get(1), "10Gbps", "0us", "10.0.1.0");
    NetDeviceContainer middle = Link(nodes.Get(1), nodes.Get(2), "5Mbps", latency, "10.0.2.0");
    Link(nodes.Get(2), nodes.Get(3), "10Gbps", "0us", "10.0.3.0");
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    if (bitErrorRate > 0)
    {
        LoseAt(middle.Get(1), bitErrorRate, 101);
        LoseAt(middle.Get(0), bitErrorRate, 102);
    }
    for (uint32_t end = 0; end < 2; ++end)
    {
        middle.Get(end)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnTheLink));
    }
    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    Ptr<Application> sink = sinks.Install(nodes.Get(3)).Get(0);
    sink->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    OnOffHelper sources("ns3::TcpSocketFactory", InetSocketAddress("10.0.3.2", PORT));
    sources.SetConstantRate(DataRate("4.416Mbps"), WRITE_BYTES);
    sources.SetAttribute("MaxBytes", UintegerValue(1000000));
    ApplicationContainer started = sources.Install(nodes.Get(0));
    started.Start(Seconds(0));
    Ptr<OnOffApplication> source = DynamicCast<OnOffApplication>(started.Get(0));
    source->TraceConnectWithoutContext("Tx", MakeCallback(&Sent));
    // The application makes its socket at its start.
    Simulator::Schedule(NanoSeconds(1), &WatchSocket, source);
    Simulator::Stop(Seconds(300));
    Simulator::Run();
    const double span = (counters.last - counters.first).GetSeconds();
    std::printf("%u,%llu,%lld,%d,", run, static_cast<unsigned long long>(counters.delivered),
                static_cast<long long>(counters.onTheLink - counters.delivered), counters.gaveUp);
    if (counters.whole > 0)
    {
        std::printf("%.9g", counters.delays / static_cast<double>(counters.whole));
    }
    std::printf(",");
    if (span > 0)
    {
        std::printf("%.9g", static_cast<double>(counters.delivered) * 8 / span);
    }
    std::printf(",%u\n", counters.timeouts);
    Simulator::Destroy();
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 5 && argc != 6)
    {
        std::cerr << "airborne: say PROTOCOL LATENCY BER RUNS [MIN_RTO]\n";
        return 2;
    }
    const uint32_t runs = std::stoul(argv[4]);
    SetUpTcp(argv[1], argc == 6 ? argv[5] : "1s");
    std::printf("run,delivered_bytes,overhead_bytes,gave_up,delay_s,goodput_bps,tcp_rto\n");
    for (uint32_t run = 1; run <= runs; ++run)
    {
        Run(argv[2], std::stod(argv[3]), run);
    }
    return 0;
}
