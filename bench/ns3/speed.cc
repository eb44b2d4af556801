// The three scenarios in which `make ns3-speed` compares the simulators, for ns-3.37:
//   lossy      one NewReno flow, 10 Mbit/s, 20 ms, 1 % of the packets lost towards the sink, 1000 s
//   many       100 NewReno flows that begin 1 ms apart, 1 Gbit/s, 5 ms, no loss but that of the queue, 10 s
//   airborne   the AeroTP papers' TCP scenario at 9 bit error rates, 25 runs each
//   many-small the same with socket buffers of 256 KiB instead of 4 MiB, which is where ns-3's memory goes
// Their twins are scenarios/speed-*.toml. Prints the octets that the sinks' applications got, and the runs.
// The build line is in the file `build`.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5000;
constexpr uint32_t BUFFER_BYTES = 4 << 20;
constexpr uint32_t SMALL_BUFFER_BYTES = 256 << 10;
constexpr uint32_t RUNS = 25;

// The TCP of scenarios/ns3-airborne.toml. What is not named is ns-3's default: Nagle off, a first timeout of
// 3 s for SYNs, at least 1 s for data, 6 tries, acknowledgements of two segments or after 200 ms.
void
SetUpTcp(bool sack, uint32_t buffer = BUFFER_BYTES)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
}

// A link between two nodes with a drop-tail queue and nothing above it.
NetDeviceContainer
Link(Ptr<Node> from,
     Ptr<Node> to,
     const std::string& rate,
     const std::string& delay,
     const std::string& queue,
     const char* network)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
    NetDeviceContainer devices = link.Install(from, to);
    Ipv4AddressHelper addresses(network, "255.255.255.0");
    addresses.Assign(devices);
    // Addressing put a queue discipline on each device.
    TrafficControlHelper().Uninstall(devices);
    return devices;
}

void
LoseAt(Ptr<NetDevice> receiver, double rate, RateErrorModel::ErrorUnit unit, int64_t stream)
{
    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetRate(rate);
    errors->SetUnit(unit);
    errors->AssignStreams(stream);
    receiver->SetAttribute("ReceiveErrorModel", PointerValue(errors));
}

Ptr<PacketSink>
SinkAt(Ptr<Node> node)
{
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    return DynamicCast<PacketSink>(sink.Install(node).Get(0));
}

// The octets that the sink got until `stop`.
uint64_t
Run(Ptr<PacketSink> sink, Time stop)
{
    Simulator::Stop(stop);
    Simulator::Run();
    uint64_t octets = sink->GetTotalRx();
    Simulator::Destroy();
    return octets;
}

// `flows` senders without end over one link.
uint64_t
RunBulk(uint32_t flows,
        const std::string& rate,
        const std::string& delay,
        const std::string& queue,
        double loss,
        Time stop,
        uint32_t buffer = BUFFER_BYTES)
{
    SetUpTcp(true, buffer);
    NodeContainer nodes(2);
    InternetStackHelper().Install(nodes);
    NetDeviceContainer link = Link(nodes.Get(0), nodes.Get(1), rate, delay, queue, "10.0.1.0");
    if (loss > 0)
    {
        LoseAt(link.Get(1), loss, RateErrorModel::ERROR_UNIT_PACKET, 101);
    }
    Ptr<PacketSink> sink = SinkAt(nodes.Get(1));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress("10.0.1.2", PORT));
    // A segment to a write; with the default of 512 octets ns-3 needs more time and twice the memory.
    bulk.SetAttribute("SendSize", UintegerValue(1448));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        bulk.Install(nodes.Get(0)).Start(MilliSeconds(flow));
    }
    return Run(sink, stop);
}

// 1 MB in writes of 1472 octets at 4.416 Mbit/s over three links, the middle one with bit errors.
uint64_t
RunAirborne(double bitErrorRate, uint32_t run)
{
    RngSeedManager::SetRun(run);
    SetUpTcp(false);
    NodeContainer nodes(4);
    InternetStackHelper().Install(nodes);
    Link(nodes.Get(0), nodes.Get(1), "10Gbps", "0us", "100p", "10.0.1.0");
    NetDeviceContainer middle =
        Link(nodes.Get(1), nodes.Get(2), "5Mbps", "10us", "100p", "10.0.2.0");
    Link(nodes.Get(2), nodes.Get(3), "10Gbps", "0us", "100p", "10.0.3.0");
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    if (bitErrorRate > 0)
    {
        LoseAt(middle.Get(1), bitErrorRate, RateErrorModel::ERROR_UNIT_BIT, 101);
        LoseAt(middle.Get(0), bitErrorRate, RateErrorModel::ERROR_UNIT_BIT, 102);
    }
    Ptr<PacketSink> sink = SinkAt(nodes.Get(3));
    OnOffHelper source("ns3::TcpSocketFactory", InetSocketAddress("10.0.3.2", PORT));
    source.SetConstantRate(DataRate("4.416Mbps"), 1472);
    source.SetAttribute("MaxBytes", UintegerValue(1000000));
    source.Install(nodes.Get(0)).Start(Seconds(0));
    return Run(sink, Seconds(300));
}

} // namespace

int
main(int argc, char* argv[])
{
    const std::string scenario = argc == 2 ? argv[1] : "";
    uint64_t octets = 0;
    uint32_t runs = 0;
    if (scenario == "lossy")
    {
        octets = RunBulk(1, "10Mbps", "20ms", "100p", 0.01, Seconds(1000));
        runs = 1;
    }
    else if (scenario == "many")
    {
        octets = RunBulk(100, "1Gbps", "5ms", "1000p", 0, Seconds(10));
        runs = 1;
    }
    else if (scenario == "many-small")
    {
        octets = RunBulk(100, "1Gbps", "5ms", "1000p", 0, Seconds(10), SMALL_BUFFER_BYTES);
        runs = 1;
    }
    else if (scenario == "airborne")
    {
        for (double rate : {0.0, 1e-6, 5e-6, 1e-5, 2.5e-5, 3.5e-5, 5e-5, 7.5e-5, 1e-4})
        {
            for (uint32_t run = 1; run <= RUNS; ++run, ++runs)
            {
                octets += RunAirborne(rate, run);
            }
        }
    }
    else
    {
        std::cerr << "speed: say which scenario: lossy, many, many-small or airborne\n";
        return 2;
    }
    std::cout << "{\"delivered_bytes\": " << octets << ", \"runs\": " << runs << "}\n";
    return 0;
}
