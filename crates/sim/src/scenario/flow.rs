//! The keys of `[flow]`.

use super::SettingsError;
use super::aerotp::{self, AerotpPlan, Carrier, SEAL_BYTES};
use super::gateway::{self, GatewayPlan};
use super::lt_tcp::{self, LtTcpPlan};
use super::own::OwnParts;
use super::read::{copies, narrow};
use super::tcp::{self, TcpPlan};
use super::topology::{AppDirection, FLOW_KEYS, FlowEnds, TopologyPlan};
use crate::app::{FirstWrite, Traffic};
use crate::own::transport::{OWN_HEADER_BYTES, OWN_PROTOCOL};
use crate::own::{OwnRepair, OwnTransport};
use core::num::NonZeroU8;
use fulmar_baseline::wire::udp::UDP_HEADER_BYTES;
use fulmar_proto::machine::Priority;
use fulmar_proto::rate::RateSharing;
use fulmar_proto::transport::aerotp::AckStyle;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::network::{NETWORK_HEADER_BYTES, NetworkProtocol};
use fulmar_settings::{Keys, TableReader};

/// One flow: an application at one end that sends to one at the other.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// The transport that carries it.
    pub transport: TransportPlan,
    /// The amount and the timing of what is sent.
    pub traffic: Traffic,
    /// The time at which the application asks its transport for a connection, from the start of the run.
    pub start: Duration,
    /// Its ends, and the paths between them.
    pub ends: FlowEnds,
    /// The length of a piece: the unit of delays and residual loss.
    pub piece: ByteCount,
    /// Octets that one packet carries; a longer write becomes several packets.
    pub payload: ByteCount,
    /// Octets of the longest packet, network header included.
    pub mtu: ByteCount,
    /// The transport's knowledge of the rate on its way.
    pub send_rate: SendRate,
    /// The time by which a piece is due, from its submission.
    pub deadline: Option<Duration>,
    /// The controller of its repair, if that is one's own.
    pub controller: Option<OwnRepair>,
    /// The precedence of its packets.
    pub priority: Priority,
    /// Whether its octets and times are in the measures. A flow that only prepares the ground for another
    /// is not measured.
    pub measured: bool,
}

/// The knowledge that a flow's transport has of the rate on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRate {
    /// It is told the lowest rate on the way.
    Lowest,
    /// It is told this one.
    Told(Bitrate),
    /// It finds the rate. The first flow of an end decides for its endpoint.
    Found(RateSharing),
}

/// The transport of a flow, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportPlan {
    /// UDP.
    Datagram(DatagramPlan),
    /// AeroTP.
    Aerotp(Box<AerotpPlan>),
    /// Two gateways with AeroTP between them.
    Gateway(Box<GatewayPlan>),
    /// TCP.
    Tcp(Box<TcpPlan>),
    /// LT-TCP.
    LtTcp(Box<LtTcpPlan>),
    /// A transport of one's own.
    Own(OwnTransport),
}

impl FlowPlan {
    /// Octets of one message, of a flow that sends messages.
    pub fn message_bytes(&self) -> Option<ByteCount> {
        match self.traffic {
            Traffic::Messages { size, .. } => Some(size),
            Traffic::Bulk { .. } | Traffic::ConstantRate { .. } | Traffic::Own { .. } => None,
        }
    }

    /// Whether its gateways have several paths to each other.
    pub(crate) fn is_bonded(&self) -> bool {
        matches!(self.transport, TransportPlan::Gateway(_)) && self.ends.paths.len() > 1
    }
}

impl TransportPlan {
    /// The protocol of its packets.
    pub(crate) const fn protocol(&self) -> NetworkProtocol {
        match self {
            Self::Datagram(_) => NetworkProtocol::UDP,
            Self::Aerotp(_) | Self::Gateway(_) => NetworkProtocol::AEROTP,
            Self::Tcp(_) => NetworkProtocol::TCP,
            Self::LtTcp(_) => NetworkProtocol::LT_TCP,
            Self::Own(_) => OWN_PROTOCOL,
        }
    }
}

/// One UDP flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPlan {
    /// The number of times that each datagram is sent.
    pub copies: NonZeroU8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransportName {
    Udp,
    Aerotp,
    Gateway,
    Tcp,
    LtTcp,
}

/// The transport that a flow names.
enum NamedTransport {
    Ours(TransportName),
    Own(OwnTransport),
}

#[derive(Clone, Copy)]
enum TrafficName {
    Bulk,
    ConstantRate,
    Messages,
}

const TRANSPORTS: [(&str, TransportName); 5] = [
    ("aerotp", TransportName::Aerotp),
    ("gateway", TransportName::Gateway),
    ("lt-tcp", TransportName::LtTcp),
    ("tcp", TransportName::Tcp),
    ("udp", TransportName::Udp),
];
const TRAFFICS: [(&str, TrafficName); 3] = [
    ("bulk", TrafficName::Bulk),
    ("constant-rate", TrafficName::ConstantRate),
    ("messages", TrafficName::Messages),
];
const FIRSTS: [(&str, FirstWrite); 3] = [
    ("at-once", FirstWrite::AtOnce),
    ("after-interval", FirstWrite::AfterInterval),
    ("after-connect", FirstWrite::AfterConnect),
];
const SHARINGS: [(&str, RateSharing); 3] = [
    ("own", RateSharing::Own),
    ("fair", RateSharing::Fair),
    ("background", RateSharing::Background),
];
/// The value of `send_rate` with which the rate is found.
const FOUND: &str = "found";
const DIRECTIONS: [(&str, AppDirection); 2] = [
    ("forward", AppDirection::Forward),
    ("reverse", AppDirection::Reverse),
];

/// The keys of `[flow]`. Keys of another transport or another traffic are accepted and have no effect, so
/// that one file can compare several.
pub(super) const KEYS: Keys = &[
    &[
        "transport",
        "traffic",
        "bytes",
        "write",
        "rate",
        "size",
        "interval",
        "first",
        "source",
        "controller",
        "start",
        "count",
        "spacing",
        "direction",
        "mtu",
        "send_rate",
        "share",
        "copies",
        "measured",
        "tcp",
        "lt_tcp",
    ],
    &FLOW_KEYS,
    &aerotp::KEYS,
    &gateway::KEYS,
];

/// Ethernet's MTU, which every figure of the papers uses.
const MTU: ByteCount = ByteCount(1500);
/// The longest packet a 16-bit length allows.
const MTU_MAX: u64 = 65_535;
/// The value of `mtu` with which a packet fills a slot.
const SLOT: &str = "slot";
/// The shortest packet that has room for every header and one octet (RFC 791's minimum MTU).
const MTU_MIN: u64 = 68;

impl FlowPlan {
    /// Reads a flow. `tcp` and `lt_tcp` are the tables `[tcp]` and `[lt_tcp]`: the common settings of all
    /// flows of that transport.
    pub(super) fn read(
        reader: &TableReader<'_>,
        (tcp, lt_tcp): (Option<&TableReader<'_>>, Option<&TableReader<'_>>),
        (own, topology, slots): (&OwnParts, &TopologyPlan, &[Option<ByteCount>]),
    ) -> Result<Self, SettingsError> {
        let direction = reader.choice("direction", &DIRECTIONS)?;
        let ends = FlowEnds::read(reader, direction, topology)?;
        let own_tcp = reader.table("tcp", tcp::KEYS)?;
        let own_lt_tcp = reader.table("lt_tcp", lt_tcp::KEYS)?;
        let named = named_transport(reader, own)?;
        let mtu = if reader.text("mtu")? == Some(SLOT) {
            let problem = "`slot` is the longest packet that the slots on the way hold; give a hop tdma = \"2ms of 20ms\", or \
                           write a length";
            let slot = (slots.iter().enumerate())
                .filter_map(|(hop, slot)| slot.filter(|_| ends.crosses(hop)));
            slot.min().ok_or_else(|| reader.wrong("mtu", problem))?
        } else {
            reader.value_or("mtu", MTU)?
        };
        if !(MTU_MIN..=MTU_MAX).contains(&mtu.0) {
            let problem = format!("`{mtu}` must be {MTU_MIN}B to {MTU_MAX}B");
            return Err(reader.wrong("mtu", problem));
        }
        let tcp: Vec<_> = tcp.into_iter().chain(&own_tcp).collect();
        let lt_tcp: Vec<_> = lt_tcp.into_iter().chain(&own_lt_tcp).collect();
        read_others(&named, reader, &tcp, &lt_tcp, mtu)?;
        let copies = copies(reader)?;
        let (transport, payload) = match named {
            NamedTransport::Ours(TransportName::Udp) => {
                let headers = ByteCount::from_usize(NETWORK_HEADER_BYTES + UDP_HEADER_BYTES);
                let plan = DatagramPlan { copies };
                (TransportPlan::Datagram(plan), mtu - headers)
            }
            NamedTransport::Ours(TransportName::Aerotp) => {
                let plan = AerotpPlan::read(reader, mtu, Carrier::Bare)?;
                let payload = plan.payload();
                (TransportPlan::Aerotp(Box::new(plan)), payload)
            }
            NamedTransport::Ours(TransportName::Gateway) => {
                let seal = if ends.paths.len() > 1 { SEAL_BYTES } else { 0 };
                let plan = GatewayPlan::read(reader, mtu - ByteCount::from_usize(seal))?;
                let payload = plan.aerotp.payload();
                (TransportPlan::Gateway(Box::new(plan)), payload)
            }
            NamedTransport::Ours(TransportName::Tcp) => {
                let plan = TcpPlan::read(&tcp, mtu)?;
                let payload = plan.payload();
                (TransportPlan::Tcp(Box::new(plan)), payload)
            }
            NamedTransport::Ours(TransportName::LtTcp) => {
                let plan = LtTcpPlan::read(reader, &lt_tcp, mtu)?;
                let payload = plan.payload();
                (TransportPlan::LtTcp(Box::new(plan)), payload)
            }
            NamedTransport::Own(transport) => {
                let headers = ByteCount::from_usize(NETWORK_HEADER_BYTES + OWN_HEADER_BYTES);
                (TransportPlan::Own(transport), mtu - headers)
            }
        };
        let send_rate = send_rate(reader, &transport)?;
        let traffic = traffic(reader, payload, own)?;
        let piece = match traffic {
            Traffic::Bulk { .. } | Traffic::Own { .. } => payload,
            Traffic::ConstantRate { write: size, .. } | Traffic::Messages { size, .. } => size,
        };
        let plan = Self {
            deadline: reader.duration("deadline")?,
            controller: controller(reader, &transport, own)?,
            transport,
            traffic,
            start: reader.duration("start")?.unwrap_or_default(),
            ends,
            piece,
            payload,
            mtu,
            send_rate,
            priority: precedence(reader)?,
            measured: reader.value_or("measured", true)?,
        };
        Ok(plan)
    }
}

/// The precedence of a flow's packets.
fn precedence(reader: &TableReader<'_>) -> Result<Priority, SettingsError> {
    let priority = reader.whole("priority", 0..=63)?;
    Ok(priority.map_or_else(Priority::default, |priority| Priority(narrow(priority))))
}

/// The transport, ours or one's own.
fn named_transport(
    reader: &TableReader<'_>,
    own: &OwnParts,
) -> Result<NamedTransport, SettingsError> {
    let name = reader.text("transport")?;
    if let Some(transport) = name.and_then(|name| own.transport(name)) {
        let name = transport.name();
        if TRANSPORTS.iter().any(|(ours, _)| *ours == name) {
            let problem = format!("`{name}` is a transport of Fulmar's; give yours another name");
            return Err(reader.wrong("transport", problem));
        }
        return Ok(NamedTransport::Own(transport));
    }
    let ours = reader.choice("transport", &TRANSPORTS)?;
    ours.map(NamedTransport::Ours).ok_or_else(|| {
        reader.wrong(
            "transport",
            "is missing; write transport = \"aerotp\", \"gateway\", \"lt-tcp\", \"tcp\" or \
             \"udp\"",
        )
    })
}

/// `send_rate = "found"`, with `share`, or a rate.
fn send_rate(
    reader: &TableReader<'_>,
    transport: &TransportPlan,
) -> Result<SendRate, SettingsError> {
    let sharing = reader.choice("share", &SHARINGS)?.unwrap_or_default();
    if reader.text("send_rate")? != Some(FOUND) {
        let told = reader.value("send_rate")?;
        return Ok(told.map_or(SendRate::Lowest, SendRate::Told));
    }
    let plan = match transport {
        TransportPlan::Aerotp(plan) => plan,
        TransportPlan::Gateway(plan) => &plan.aerotp,
        TransportPlan::Datagram(_)
        | TransportPlan::Tcp(_)
        | TransportPlan::LtTcp(_)
        | TransportPlan::Own(_) => {
            let problem = "`found` is for aerotp and gateway: a TCP finds its rate without being \
                           asked, nobody reports to udp, and a transport of your own finds it by itself; leave it out \
                           or write a rate";
            return Err(reader.wrong("send_rate", problem));
        }
    };
    if plan.connection.mode == Mode::Datagram {
        let problem = "`found` needs the receiver's reports, and in the mode datagram nobody \
                       answers; unreliable is the least mode that does";
        return Err(reader.wrong("send_rate", problem));
    }
    if plan.connection.ack.style == AckStyle::Listed {
        let problem = "`found` needs the receiver's reports, which the papers' acknowledgements \
                       have no room for; write mack_style = \"cumulative\"";
        return Err(reader.wrong("send_rate", problem));
    }
    Ok(SendRate::Found(sharing))
}

/// Reads the keys of transports other than `name`: they have no effect, but must be valid.
fn read_others(
    named: &NamedTransport,
    reader: &TableReader<'_>,
    tcp: &[&TableReader<'_>],
    lt_tcp: &[&TableReader<'_>],
    mtu: ByteCount,
) -> Result<(), SettingsError> {
    use TransportName::{Aerotp, Gateway, LtTcp, Tcp};
    let name = match named {
        NamedTransport::Ours(name) => Some(*name),
        NamedTransport::Own(_) => None,
    };
    if name != Some(Tcp) && !tcp.is_empty() {
        TcpPlan::read(tcp, mtu.max(MTU))?;
    }
    if name != Some(LtTcp) && !lt_tcp.is_empty() {
        LtTcpPlan::read(reader, lt_tcp, mtu.max(MTU))?;
    }
    if !matches!(name, Some(Aerotp | Gateway)) {
        AerotpPlan::values(reader, mtu, Carrier::Other)?;
    }
    if name != Some(Gateway) {
        gateway::values(reader)?;
    }
    if matches!(name, None | Some(Tcp | LtTcp)) && copies(reader)? > NonZeroU8::MIN {
        let problem = "is for aerotp, gateway and udp: another transport sends again what it \
                       chooses; leave it out or write 1";
        return Err(reader.wrong("copies", problem));
    }
    Ok(())
}

/// The controller of one's own that `controller` names.
fn controller(
    reader: &TableReader<'_>,
    transport: &TransportPlan,
    own: &OwnParts,
) -> Result<Option<OwnRepair>, SettingsError> {
    let Some(name) = reader.text("controller")?.filter(|name| *name != "none") else {
        return Ok(None);
    };
    let controller = own.controller(name);
    let controller = controller.map_err(|problem| reader.wrong("controller", problem))?;
    let has_goal = match transport {
        TransportPlan::Aerotp(plan) => plan.goal().is_some(),
        TransportPlan::Datagram(_)
        | TransportPlan::Gateway(_)
        | TransportPlan::Tcp(_)
        | TransportPlan::LtTcp(_)
        | TransportPlan::Own(_) => false,
    };
    if !has_goal {
        let problem = "chooses the repair for a goal of an aerotp flow; write transport = \"aerotp\", \
                       mode = \"auto\" and a deadline, or leave it out";
        return Err(reader.wrong("controller", problem));
    }
    Ok(Some(controller))
}

fn traffic(
    reader: &TableReader<'_>,
    payload: ByteCount,
    own: &OwnParts,
) -> Result<Traffic, SettingsError> {
    let bytes: ByteCount = reader.required("bytes", "\"1MB\"")?;
    if bytes == ByteCount::ZERO {
        return Err(reader.wrong("bytes", "must be at least 1B"));
    }
    // Bulk traffic has no use for `write`, but the value must be valid.
    let write: Option<ByteCount> = reader.value("write")?;
    if write == Some(ByteCount::ZERO) {
        return Err(reader.wrong("write", "must be at least 1B"));
    }
    if reader.text("rate")? == Some(FOUND) {
        let problem = "is what the application writes in a second; for the transport to find its \
                       rate, write send_rate = \"found\"";
        return Err(reader.wrong("rate", problem));
    }
    let rate: Option<Bitrate> = reader.value("rate")?;
    if rate == Some(Bitrate::ZERO) {
        return Err(reader.wrong("rate", "must be at least 1bit"));
    }
    // Other traffic has no use for these, but the values must be valid.
    let size: Option<ByteCount> = reader.value("size")?;
    if size.is_some_and(|size| size == ByteCount::ZERO || size > payload) {
        let problem = format!("must be 1B to {payload}: a message is one packet");
        return Err(reader.wrong("size", problem));
    }
    let interval = reader.duration("interval")?;
    if interval == Some(Duration::ZERO) {
        return Err(reader.wrong("interval", "must be above 0; write 20ms"));
    }
    let first = reader
        .choice("first", &FIRSTS)?
        .unwrap_or(FirstWrite::AfterInterval);
    let name = reader.choice("traffic", &TRAFFICS)?;
    if let Some(source) = reader.text("source")?.filter(|name| *name != "none") {
        let source = own.source(source);
        let source = source.map_err(|problem| reader.wrong("source", problem))?;
        return Ok(Traffic::Own { bytes, source });
    }
    match name.unwrap_or(TrafficName::Bulk) {
        TrafficName::Bulk => Ok(Traffic::Bulk { bytes }),
        TrafficName::ConstantRate => Ok(Traffic::ConstantRate {
            bytes,
            write: write.unwrap_or(payload),
            rate: reader.required("rate", "\"4.416Mbit/s\"")?,
            first,
        }),
        TrafficName::Messages => Ok(Traffic::Messages {
            bytes,
            size: size.unwrap_or(payload),
            interval: interval
                .ok_or_else(|| reader.wrong("interval", "is missing; write interval = \"20ms\""))?,
            first,
        }),
    }
}
