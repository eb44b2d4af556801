//! The flags that describe an AeroTP connection, and the settings that follow from them.

use super::secure::in_options;
use crate::exit::{Exit, Failure, OrExit};
use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use core::num::NonZeroU8;
use fulmar_net::capture::{CapturedApplication, DatagramCapture};
use fulmar_net::clock::Clock;
use fulmar_net::event_trace::{EventTrace, Traced};
use fulmar_net::recording::{EndOfRecording, RecordingConfig};
use fulmar_net::secured::{
    Credentials, Secured, SecuredEndpoint, SecuredError, SecurityNote, Unsecured, choose_checksums,
    secured,
};
use fulmar_net::session::{Entropy, PeerIndex, SESSION_OVERHEAD};
use fulmar_net::udp::{Application, BURST_TIME, PathTableConfig, PortConfig, UdpDriver, UdpPort};
use fulmar_net::wait;
use fulmar_net::wait::WakeUp;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::PathId;
use fulmar_proto::rate::RateSharing;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AddressKey, AerotpEndpoint, ConfigError, ConnectionConfig, Counters, EndpointConfig,
    ModeRules, RateSource, SHARINGS,
};
use fulmar_proto::transport::parts::RtoLimits;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, parse_duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_settings::{FieldKeys, with_keys};
use serde::Serialize;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

/// The longest wait of a block for its last source; longer only where the link takes longer for a whole
/// block.
const BLOCK_CLOSE: Duration = Duration::from_millis(50);
/// TPDUs in flight at most: 47 MB of the usual size, or 4 s at 100 mbit.
pub(crate) const WINDOW_TPDUS: u16 = 32_768;
/// The time whose octets the send buffer holds, within [`SEND_BUFFER_MIN`] and `_MAX`: several round trips
/// even over a geostationary satellite, and twice what mode nack keeps for requests.
const SEND_BUFFER_TIME: Duration = Duration::from_secs(4);
const SEND_BUFFER_MIN: ByteCount = ByteCount(256 * 1024);
const SEND_BUFFER_MAX: ByteCount = ByteCount(64 * 1024 * 1024);

/// The options that set the fields which [`ConfigError`] names.
const OPTIONS: &FieldKeys = &[
    ("tpdu_bytes_max", "--mtu"),
    ("fec_words", "--fec-words"),
    ("block", "--block"),
    ("ack.every", "--mack"),
    ("give_up_after", "--give-up"),
];

/// The error about the options that made the settings.
pub(crate) fn wrong_options(error: &ConfigError) -> Failure {
    Failure {
        exit: Exit::Usage,
        cause: anyhow::Error::msg(with_keys(OPTIONS, &error.to_string())),
    }
}

/// An MTU: octets, with or without their unit, since no other unit makes sense.
pub(crate) fn mtu(text: &str) -> Result<ByteCount, String> {
    let parsed = match text.parse::<u64>() {
        Ok(octets) => ByteCount(octets),
        Err(_) => text
            .parse::<ByteCount>()
            .map_err(|error| error.to_string())?,
    };
    if (ByteCount(100)..=ByteCount(65_000)).contains(&parsed) {
        Ok(parsed)
    } else {
        Err(format!("{parsed} is out of range: 100 to 65000 octets"))
    }
}

/// A time that something takes or may take.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be longer than 0".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// The time between two soundings.
pub(crate) fn sounding(text: &str) -> Result<Duration, String> {
    let parsed = parse_duration(text).map_err(|error| error.to_string())?;
    if !(Duration::from_millis(1)..=Duration::from_secs(1)).contains(&parsed) {
        return Err("must be 1ms to 1s".to_owned());
    }
    Ok(parsed)
}

/// The longest silence of a peer. Signs of life come four times in it.
pub(crate) fn give_up(text: &str) -> Result<Duration, String> {
    let parsed = parse_duration(text).map_err(|error| error.to_string())?;
    if parsed < Duration::from_secs(1) {
        return Err("must be at least 1s".to_owned());
    }
    Ok(parsed)
}

/// The rate that is supposed until one is found, where something must be.
const RATE_SUPPOSED: Bitrate = Bitrate::from_bits_per_second(5_000_000);

/// The options on the rate of the link, and on others who use it.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct RateArgs {
    /// Rate of the link, all headers included, if it is known; else it is found.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Bitrate>,
    /// Whose the link is: own (nobody else's; with --rate, that is sent whatever others need), fair (others get their
    /// share), background (others come first) [default: own with --rate, else fair].
    #[arg(long, value_name = "WHOSE", value_parser = sharing())]
    pub(crate) share: Option<RateSharing>,
}

impl RateArgs {
    /// The way in which the rate is known in `mode`, of which the other end tells something if it is in a session, or
    /// has connections. Where it tells nothing, nothing can be found.
    ///
    /// # Errors
    /// A link that is to be shared in such a mode.
    pub(crate) fn source(self, mode: Mode, secured: bool) -> Result<RateSource, Failure> {
        if secured || ModeRules::of(mode).connection {
            return Ok(RateSource::of(self.rate, self.share));
        }
        if let Some(share @ (RateSharing::Fair | RateSharing::Background)) = self.share {
            let share = SHARINGS.iter().find(|(_, known)| *known == share);
            return Err(Failure {
                exit: Exit::Usage,
                cause: anyhow::anyhow!(
                    "--share {}: a receiver tells nothing in mode {mode} without keys, so nobody knows what others need; \
                     give both ends --key and --peer, or another --mode",
                    share.map_or("", |(name, _)| *name),
                ),
            });
        }
        Ok(RateSource::Told(self.supposed()))
    }

    /// The rate, or one for what must be decided before it is found.
    pub(crate) fn supposed(self) -> Bitrate {
        self.rate.unwrap_or(RATE_SUPPOSED)
    }
}

fn sharing() -> impl TypedValueParser<Value = RateSharing> {
    let names = SHARINGS.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|given| {
        let known = SHARINGS.into_iter().find(|(name, _)| *name == given);
        known.map(|(_, sharing)| sharing).ok_or("is not known")
    })
}

/// A rate above zero.
pub(crate) fn rate(text: &str) -> Result<Bitrate, String> {
    let rate: Bitrate = text.parse().map_err(|error| format!("{error}"))?;
    if rate.as_bits_per_second() == 0 {
        return Err(
            "nothing is ever sent at a rate of 0; write what the link carries, or leave it out"
                .to_owned(),
        );
    }
    Ok(rate)
}

/// The modes by their names, for shells to complete.
pub(crate) fn mode() -> impl TypedValueParser<Value = Mode> {
    let names = Mode::ALL.map(Mode::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Mode>())
}

pub(crate) fn fec_words(text: &str) -> Result<FecStrength, String> {
    let expected = || format!("`{text}` is out of range: 0 to 256 words of 32 bits");
    text.parse()
        .ok()
        .and_then(FecStrength::from_words)
        .ok_or_else(expected)
}

pub(crate) fn block(text: &str) -> Result<BlockPlan, String> {
    let plan = text.split_once(',').and_then(|(k, r)| {
        let k = k.trim().parse::<NonZeroU8>().ok()?;
        BlockPlan::new(k, r.trim().parse().ok()?, BLOCK_CLOSE)
    });
    plan.ok_or_else(|| {
        format!("`{text}`: write K,R, such as 32,4: K sources and R repairs, at most 256 together")
    })
}

/// Octets that IP, UDP and, if it is `secured`, a session add to each datagram towards `peer`.
pub(crate) fn lower_overhead(peer: SocketAddr, secured: bool) -> ByteCount {
    let session = if secured {
        SESSION_OVERHEAD
    } else {
        ByteCount(0)
    };
    if peer.is_ipv4() {
        ByteCount(28) + session
    } else {
        ByteCount(48) + session
    }
}

/// Connection settings for datagrams of at most `mtu` octets over `overhead`, sent at `rate`.
pub(crate) fn settings(
    (mtu, rate): (ByteCount, Bitrate),
    overhead: ByteCount,
    give_up: Duration,
) -> ConnectionConfig {
    ConnectionConfig {
        rto: RtoLimits::asking_early(rate, mtu),
        tpdu_bytes_max: mtu.saturating_sub(overhead).as_usize(),
        window_tpdus: WINDOW_TPDUS,
        give_up_after: give_up,
        ..ConnectionConfig::default()
    }
}

/// The octets that the send buffer should hold at `rate`, or at any.
pub(crate) fn send_buffer_bytes(rate: Option<Bitrate>) -> usize {
    rate.map_or(SEND_BUFFER_MAX, |rate| rate.bytes_in(SEND_BUFFER_TIME))
        .clamp(SEND_BUFFER_MIN, SEND_BUFFER_MAX)
        .as_usize()
}

/// One acknowledgement for every `tpdus` TPDUs.
pub(crate) fn acknowledge_every(tpdus: u16) -> AckPolicy {
    AckPolicy {
        every: tpdus,
        ..AckPolicy::default()
    }
}

/// An endpoint, by itself or in a session.
pub(crate) enum EndpointCarrier {
    Open(Box<AerotpEndpoint>),
    Secured(Box<SecuredEndpoint>),
}

/// The settings from which a [`EndpointCarrier`] is made.
#[derive(Debug)]
pub(crate) struct CarrierPlan {
    /// The rate at which it sends.
    pub(crate) rate: RateSource,
    /// Whether the other end may find its rate by what it is told.
    pub(crate) reports_often: bool,
    /// Octets around each TPDU, a session included.
    pub(crate) overhead: ByteCount,
    /// The largest packet.
    pub(crate) mtu: ByteCount,
    /// Keys, if there are some.
    pub(crate) credentials: Option<Credentials>,
    /// Whether data in a session may leave without UDP's checksum.
    pub(crate) chooses_checksum: bool,
    /// The path to the other end; `None` for an end that waits.
    pub(crate) calls: Option<PathId>,
}

impl EndpointCarrier {
    /// An endpoint as `plan` says. One that anybody can reach asks strangers to show that their address is
    /// theirs.
    ///
    /// # Errors
    /// The kernel has no entropy, or the keys make no session.
    pub(crate) fn new(plan: CarrierPlan) -> Result<Self, Failure> {
        let CarrierPlan {
            rate,
            reports_often,
            overhead,
            mtu,
            credentials,
            chooses_checksum,
            calls,
        } = plan;
        let mut entropy = Entropy::from_system()
            .context("asking for entropy")
            .or_exit(Exit::Device)?;
        let is_open_to_all = credentials.is_none() && calls.is_none();
        let config = EndpointConfig {
            rate,
            reports_often,
            lower_overhead: overhead,
            burst: BURST_TIME,
            follows_length: true,
            address_key: is_open_to_all.then(|| AddressKey::new(entropy.array())),
            ..EndpointConfig::default()
        };
        let rng = Rng::from_seed(u64::from_le_bytes(entropy.array()));
        let endpoint = AerotpEndpoint::new(config, rng);
        let Some(credentials) = credentials else {
            return Ok(Self::Open(Box::new(endpoint)));
        };
        let link = secured(endpoint, credentials, mtu, calls);
        let mut link = link.map_err(|error| {
            let exit = match error {
                SecuredError::Entropy(_) => Exit::Device,
                SecuredError::Config(_) => Exit::Usage,
            };
            let cause = error.into();
            Failure { exit, cause }
        })?;
        if chooses_checksum {
            choose_checksums(&mut link);
        }
        Ok(Self::Secured(Box::new(link)))
    }

    /// The endpoint.
    pub(crate) fn endpoint_mut(&mut self) -> &mut AerotpEndpoint {
        match self {
            Self::Open(endpoint) => endpoint,
            Self::Secured(link) => link.inner_mut(),
        }
    }

    /// The path by which the endpoint knows the end that is at `path`, if it calls one.
    pub(crate) const fn inner_path(&self, path: PathId) -> PathId {
        match self {
            Self::Open(_) => path,
            Self::Secured(_) => PeerIndex(0).inner_path(),
        }
    }

    /// Runs `application` to its end.
    ///
    /// # Errors
    /// The socket is broken.
    pub(crate) fn run(
        &mut self,
        driver: &mut UdpDriver,
        application: &mut dyn Application<AerotpEndpoint>,
        quiet: bool,
    ) -> Result<Option<String>, Failure> {
        self.run_captured(driver, application, quiet, None)
    }

    /// The same with a capture of the datagrams, sealed as they are on the path. Returns the last reason that was heard for
    /// which the ends have no session.
    ///
    /// # Errors
    /// The socket is broken.
    pub(crate) fn run_captured(
        &mut self,
        driver: &mut UdpDriver,
        application: &mut dyn Application<AerotpEndpoint>,
        quiet: bool,
        capture: Option<&DatagramCapture>,
    ) -> Result<Option<String>, Failure> {
        let mut refused = None;
        let tell = |note: SecurityNote| {
            let words = in_options(&note);
            if !quiet {
                eprintln!("fulmar: {words}");
            }
            if matches!(note, SecurityNote::TurnedAway(_) | SecurityNote::Refused(_)) {
                refused = Some(words);
            }
        };
        let ran = match self {
            Self::Open(endpoint) => {
                let program = Unsecured::new(application, tell);
                driver.run(
                    endpoint.as_mut(),
                    &mut CapturedApplication::new(program, capture),
                )
            }
            Self::Secured(link) => {
                let program = Secured::new(application, tell);
                driver.run(
                    link.as_mut(),
                    &mut CapturedApplication::new(program, capture),
                )
            }
        };
        ran.context("the socket").or_exit(Exit::Device)?;
        Ok(refused)
    }
}

/// A loop around a socket to `peer`, and the path there. Warnings as in [`complain`].
///
/// # Errors
/// The system has no way to `peer`.
pub(crate) fn driver_to(
    peer: SocketAddr,
    config: PortConfig,
    wake_up: WakeUp,
    (verbose, quiet): (u8, bool),
) -> Result<(UdpDriver, PathId), Failure> {
    let port = UdpPort::connect(peer, config)
        .with_context(|| format!("reaching {peer}"))
        .or_exit(Exit::Unreachable)?;
    complain(&port, verbose, quiet);
    let mut driver = UdpDriver::new(Clock::start(), port, wake_up, PathTableConfig::default());
    let path = driver
        .path_to(peer)
        .context("the path table is full")
        .or_exit(Exit::Failed)?;
    Ok((driver, path))
}

/// The way out for who wanted to listen at an address, as the end of a sentence that names it; empty if none is known.
pub(crate) fn cure_of_bind(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            ", which another program has: stop it (ss -ulpn names it), or give another port"
        }
        ErrorKind::AddrNotAvailable => {
            ", which this machine does not have: give one that `ip address` lists, or none before the colon"
        }
        _ => "",
    }
}

/// A loop around a socket that listens at `address`, and the address at which it listens in the end.
/// Warnings as in [`complain`].
///
/// # Errors
/// The address cannot be had.
pub(crate) fn driver_at(
    address: SocketAddr,
    config: PortConfig,
    wake_up: WakeUp,
    (verbose, quiet): (u8, bool),
) -> Result<(UdpDriver, SocketAddr), Failure> {
    let port = UdpPort::bind(address, config)
        .map_err(|error| {
            let cure = cure_of_bind(&error);
            anyhow::Error::new(error).context(format!("listening on {address}{cure}"))
        })
        .or_exit(Exit::Device)?;
    complain(&port, verbose, quiet);
    let listening = port
        .local()
        .with_context(|| format!("listening on {address}"))
        .or_exit(Exit::Device)?;
    let driver = UdpDriver::new(Clock::start(), port, wake_up, PathTableConfig::default());
    Ok((driver, listening))
}

/// An event trace to a file; its first line names the role and the name of the end that it traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceTo<'a> {
    pub(crate) file: Option<&'a Path>,
    pub(crate) role: &'a str,
    pub(crate) name: &'a str,
}

/// Runs `application` to its end, traced if that is asked for. Returns the last reason that was heard for which the ends have
/// no session.
///
/// # Errors
/// The socket is broken, or the trace cannot begin.
pub(crate) fn run(
    driver: &mut UdpDriver,
    carrier: &mut EndpointCarrier,
    application: &mut dyn Application<AerotpEndpoint>,
    (trace, quiet): (TraceTo<'_>, bool),
) -> Result<Option<String>, Failure> {
    let Some(file) = trace.file else {
        return carrier.run(driver, application, quiet);
    };
    let config = RecordingConfig {
        file: file.to_owned(),
        max_size: ByteCount(u64::MAX),
        is_required: true,
    };
    let tell = |ended: EndOfRecording| eprintln!("fulmar: {ended}; the transfer goes on");
    let clock = driver.clock();
    let events = EventTrace::start(clock, config, trace.role, trace.name, tell);
    let events = events.or_exit(Exit::Device)?;
    let mut traced = Traced::new(application, carrier.endpoint_mut(), events);
    let ran = carrier.run(driver, &mut traced, quiet);
    traced.end(clock.now(), carrier.endpoint_mut());
    ran
}

/// The capture of the socket at `local` to a file, if there is to be one.
///
/// # Errors
/// It cannot be made.
pub(crate) fn capture(
    file: Option<&Path>,
    driver: &UdpDriver,
    about: &str,
    local: SocketAddr,
) -> Result<Option<DatagramCapture>, Failure> {
    let begin = |file: &Path| {
        let config = RecordingConfig {
            file: file.to_owned(),
            max_size: ByteCount(u64::MAX),
            is_required: true,
        };
        let tell = |ended: EndOfRecording| eprintln!("fulmar: {ended}; the test goes on");
        DatagramCapture::start(driver.clock(), config, about, local, tell).or_exit(Exit::Device)
    };
    file.map(begin).transpose()
}

/// Asks for precise timers, and warns if there are none.
pub(super) fn wait_precisely() {
    if let Err(error) = wait::precise_timers() {
        eprintln!("fulmar: timing will be coarser by 50 us: {error}");
    }
}

/// Warns of what could be better about the machine, with more lines if `verbose`; none if `quiet`.
fn complain(port: &UdpPort, verbose: u8, quiet: bool) {
    if quiet {
        return;
    }
    wait_precisely();
    let buffers = port.buffers();
    if verbose > 0 && buffers.is_limited() {
        eprintln!(
            "fulmar: the kernel granted socket buffers of {} (receive) and {} (send) instead of \
             {}; raise net.core.rmem_max and net.core.wmem_max",
            buffers.receive, buffers.send, buffers.asked
        );
    }
}

/// The counters of one connection, as they appear in JSON. Counters that only the other end can know are
/// null.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct WireReport {
    sent_source_bytes: Option<u64>,
    sent_repair_bytes: Option<u64>,
    sent_retransmission_bytes: Option<u64>,
    sent_control_bytes: Option<u64>,
    wire_lost_tpdus: Option<u64>,
    wire_damaged_tpdus: Option<u64>,
    recovered_fec_words_tpdus: Option<u64>,
    recovered_fec_block_tpdus: Option<u64>,
    recovered_arq_tpdus: Option<u64>,
    residual_lost_tpdus: Option<u64>,
    residual_damaged_tpdus: Option<u64>,
}

impl WireReport {
    fn sent(counters: Option<&Counters>) -> Self {
        let sent = counters.map(|counters| counters.sent_bytes.map(Some));
        let [source, repair, retransmission, control] = sent.unwrap_or_default();
        Self {
            sent_source_bytes: source,
            sent_repair_bytes: repair,
            sent_retransmission_bytes: retransmission,
            sent_control_bytes: control,
            wire_lost_tpdus: None,
            wire_damaged_tpdus: None,
            recovered_fec_words_tpdus: None,
            recovered_fec_block_tpdus: None,
            recovered_arq_tpdus: None,
            residual_lost_tpdus: None,
            residual_damaged_tpdus: None,
        }
    }

    /// The report of a connection that sent the file.
    pub(crate) fn of_sender(counters: Option<&Counters>) -> Self {
        let recovered = |counters: &Counters| counters.recovered_arq.iter().sum();
        Self {
            recovered_arq_tpdus: counters.map(recovered),
            ..Self::sent(counters)
        }
    }

    /// The report of a connection that received it. Without a connection, as for datagrams, nothing is
    /// known.
    pub(crate) fn of_receiver(counters: Option<&Counters>) -> Self {
        let count = |field: fn(&Counters) -> u64| counters.map(field);
        Self {
            wire_lost_tpdus: count(|counters| counters.wire_lost),
            wire_damaged_tpdus: count(|counters| counters.wire_damaged),
            recovered_fec_words_tpdus: count(|counters| counters.recovered_fec_words),
            recovered_fec_block_tpdus: count(|counters| counters.recovered_fec_block),
            residual_lost_tpdus: count(|counters| counters.residual_lost),
            residual_damaged_tpdus: count(|counters| counters.residual_damaged),
            ..Self::sent(counters)
        }
    }
}
