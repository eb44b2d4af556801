//! `fulmar perf`: the path between two hosts, measured with a flow of AeroTP; iperf3's letters.

mod amount;
mod goal;
mod json;
mod text;

use super::address::{resolve, resolve_remote};
use super::connection::{self, CarrierPlan, EndpointCarrier, RateArgs};
use super::secure::SecurityArgs;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use fulmar_net::entropy;
use fulmar_net::perf::{
    Client, ClientPlan, Interval, Limit, Observer, PerfError, PerfReport, PerfServer, Sent,
    ServerPlan, Test, TestDirection,
};
use fulmar_net::udp::PortConfig;
use fulmar_net::wait::waker;
use fulmar_proto::transport::aerotp::{ConnectionConfig, RateSource, ThinRepair};
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use goal::{GoalArgs, GoalOutcome};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The assumption on which one-way delays rest.
const ASSUMPTION: &str = "the fastest question and its answer took equally long each way";

const EXAMPLES: &str = "\
Examples:
  fulmar perf -s
      wait for tests on UDP port 4917, until Ctrl-C
  fulmar perf -c 10.0.0.2
      ten seconds of as much as mode reliable finds the path to carry, sharing it with others
  fulmar perf -c 10.0.0.2 --rate 20mbit
      the same over a link of 20 Mbit/s that nobody else uses
  fulmar perf -c 10.0.0.2 -u -b 4M -t 60 -i 1
      4 Mbit/s without repair, a line each second: what a link of 5 Mbit/s itself loses
  fulmar perf -c 10.0.0.2 -b 480k -l 1200 --deadline 90ms
      a message every 20 ms, repaired so that 99 of 100 arrive in order within 90 ms, if 90 % more octets do that
  fulmar perf -c 10.0.0.2 -P 8 --rate 20mbit
      the same link shared by eight streams: each one's figures, and how fairly they share
  fulmar perf -c 10.0.0.2 -R --mode nack-mack --fec-words 16 -J | jq .delay.p99_s
      from there to here; one JSON object, whatever happens

The letters are iperf3's. -b is the rate of the data, --rate what the link carries with all headers. Without --rate
that is found, and shared fairly with others; with it at most that is sent, whatever others need. Of a server --rate is
the most that it sends; in tests from there it takes the link for shared, unless its --share says else or the client has
a --rate. Rates and -n are of the whole test,
however many streams share them: here -P 8 -b 4M is 4 Mbit/s, where iperf3 sends 32. One-way delays need the two
clocks compared, which each result says how exactly could be done.
Without --key and --peer, or --preset, anyone who reaches a server's port may measure, at its --rate at most.
";

/// The arguments of `fulmar perf`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES, disable_help_flag = false)]
#[command(group = clap::ArgGroup::new("side").required(true).args(["server", "client"]))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of iperf3's, and they are independent"
)]
pub(crate) struct PerfArgs {
    /// Wait for tests.
    #[arg(short, long)]
    server: bool,
    /// Measure the path to the server there.
    #[arg(short, long, value_name = "HOST[:PORT]")]
    client: Option<String>,
    /// The server's UDP port [default: 4917]; of a server, 0 takes a free one.
    #[arg(short, long)]
    port: Option<u16>,
    /// Server: the address to listen at, if not every one.
    #[arg(short = 'B', long, value_name = "HOST[:PORT]", requires = "server")]
    bind: Option<String>,
    /// Server: end after one test.
    #[arg(short = '1', long, requires = "server")]
    one_off: bool,
    /// Client: length of the test, in seconds or with a unit; 10 s unless -n is given.
    #[arg(short, long, value_name = "TIME", value_parser = amount::time, conflicts_with = "bytes")]
    time: Option<Duration>,
    /// Client: send this many octets instead, over all streams, such as 10MB; iperf3's 10M is 10 MiB here
    /// too.
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = amount::bytes)]
    bytes: Option<ByteCount>,
    /// Client: rate of the data of all streams, such as 5Mbit/s or iperf3's 5M; without it, all that goes (with -u 1
    /// Mbit/s).
    #[arg(short, long, value_name = "RATE", value_parser = amount::rate)]
    bitrate: Option<Bitrate>,
    /// Client: octets of a message, whose delay is measured; without it, what one packet carries.
    #[arg(short, long, value_name = "BYTES", value_parser = amount::bytes)]
    length: Option<ByteCount>,
    /// Client: a line for each interval, in seconds or with a unit.
    #[arg(short, long, value_name = "TIME", value_parser = amount::time)]
    interval: Option<Duration>,
    /// Client: number of streams, 1 to 128, each a connection of its own; they share --rate, -b and -n.
    #[arg(short = 'P', long, value_name = "N", default_value = "1", value_parser = amount::streams)]
    parallel: u8,
    /// Client: without acknowledgements or repair, as iperf3's UDP; the same as --mode unreliable.
    #[arg(short, long, conflicts_with = "mode")]
    udp: bool,
    /// Client: the server sends.
    #[arg(short = 'R', long)]
    reverse: bool,
    #[command(flatten)]
    goal: GoalArgs,
    /// Client: reliable, nack-mack, near-reliable (everything arrives); nack, quasi-reliable, unreliable.
    #[arg(long, default_value_t = Mode::Reliable, value_parser = connection::mode())]
    mode: Mode,
    #[command(flatten)]
    rate: RateArgs,
    /// Client: parity in each packet against bit errors, in words of 32 bits.
    #[arg(long, value_name = "WORDS", default_value = "0", value_parser = connection::fec_words)]
    fec_words: FecStrength,
    /// The largest datagram, IP header included.
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = connection::mtu)]
    mtu: ByteCount,
    /// Give up after hearing nothing from the other end for this long, or for 4 s if that is longer.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = connection::give_up)]
    give_up: Duration,
    /// Client: give up if nobody has answered at all for this long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = connection::span)]
    connect_timeout: Duration,
    /// Client: beside the messages send a small datagram so often, which nobody reads: a capture then shows when an outage ended.
    #[arg(long, value_name = "TIME", value_parser = connection::sounding, requires = "client", conflicts_with = "reverse")]
    sounding: Option<Duration>,
    /// The result as one JSON object on stdout, errors included; of a server one for each test, a line each.
    #[arg(short = 'J', long)]
    json: bool,
    /// Write every datagram to a pcapng file, for Wireshark and, with that of the other end, for fulmar replay.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    #[command(flatten)]
    security: SecurityArgs,
}

/// The UDP port of tests.
const PORT: u16 = 4_917;
/// The most that a server sends if it was told none.
const SERVER_RATE: Bitrate = Bitrate::from_bits_per_second(1_000_000_000);
/// The rate of UDP tests, iperf3's default.
const UDP_RATE: Bitrate = Bitrate::from_bits_per_second(1_000_000);
const TIME: Duration = Duration::from_secs(10);

impl PerfArgs {
    fn mode(&self) -> Mode {
        if self.udp {
            Mode::Unreliable
        } else {
            self.mode
        }
    }

    fn thin(&self) -> Result<Option<ThinRepair>, String> {
        let has_rate = self.bitrate.is_some() || self.udp;
        self.goal.thin(self.mode(), has_rate)
    }

    /// The outcome of the stated goal, if there is one.
    fn goal_outcome(&self, report: &PerfReport) -> Option<GoalOutcome> {
        let goal = self.thin().ok().flatten()?.goal()?;
        GoalOutcome::of(&goal, &report.sum)
    }

    fn connection(&self, overhead: ByteCount) -> ConnectionConfig {
        ConnectionConfig {
            mode: self.mode(),
            fec_words: self.fec_words,
            send_buffer_bytes: connection::send_buffer_bytes(self.bound()),
            // It was checked.
            thin: self.thin().ok().flatten(),
            ..connection::settings((self.mtu, self.supposed()), overhead, self.give_up)
        }
    }

    /// The most that this end sends, if there is a bound.
    fn bound(&self) -> Option<Bitrate> {
        self.rate.rate.or(self.server.then_some(SERVER_RATE))
    }

    /// That, or what is supposed before it is found.
    fn supposed(&self) -> Bitrate {
        self.bound().unwrap_or(self.rate.supposed())
    }

    /// The test that the server is asked for.
    fn test(&self, connection: &ConnectionConfig) -> Result<Test, Failure> {
        self.thin()
            .map_err(|problem| anyhow!(problem))
            .or_exit(Exit::Usage)?;
        let payload = connection
            .payload_bytes()
            .map_err(|error| connection::wrong_options(&error))?;
        // The server may listen on IPv6, whose packets have less room.
        let v6 = SocketAddr::from(([0_u16; 8], 0));
        let overhead_max = connection::lower_overhead(v6, self.security.is_given());
        let room_there = ConnectionConfig {
            tpdu_bytes_max: (self.mtu - overhead_max).as_usize(),
            ..*connection
        };
        let common = room_there
            .payload_bytes()
            .map_err(|error| connection::wrong_options(&error))?;
        let default = if self.reverse {
            common.min(payload)
        } else {
            payload
        };
        let length = self.length.unwrap_or(ByteCount::from_usize(default));
        let whole = fulmar_proto::transport::aerotp::ModeRules::of(self.mode()).complete;
        if !whole && length.as_usize() > payload {
            let problem = format!(
                "--length {length}: mode {} sends each message in one packet, of {payload}B at most",
                self.mode()
            );
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        let id = entropy::seed()
            .context("asking for entropy")
            .or_exit(Exit::Device)?;
        let direction = if self.reverse {
            TestDirection::Down
        } else {
            TestDirection::Up
        };
        let rate = self.bitrate.or(self.udp.then_some(UDP_RATE));
        let mut test = Test::new((id & 0xFFFF_FFFF) as u32, self.mode(), direction);
        test.message_bytes = u32::try_from(length.0).unwrap_or(u32::MAX);
        test.rate_bps = rate.map(Bitrate::as_bits_per_second);
        test.link_bps = self.rate.rate.map_or(0, Bitrate::as_bits_per_second);
        test.limit = match self.bytes {
            Some(bytes) => Limit::Bytes(bytes.0),
            None => Limit::Time(self.time.unwrap_or(TIME)),
        };
        test.interval = self.interval;
        test.streams = self.parallel;
        test.fec_words = self.fec_words.words();
        test.check()
            .map_err(|problem| anyhow!(problem))
            .or_exit(Exit::Usage)?;
        Ok(test)
    }
}

/// Serves, or measures.
///
/// # Errors
/// An argument is wrong, the port is in use, or the server cannot be reached or refuses.
pub(crate) fn run(args: &PerfArgs, verbose: u8) -> Result<Exit, Failure> {
    let Some(host) = &args.client else {
        return serve(args, verbose);
    };
    match measure(args, host, verbose) {
        Ok((peer, report, stopped)) => {
            let goal = args.goal_outcome(&report);
            let is_missed = goal.is_some_and(|goal| goal.is_met() == Some(false));
            let exit = stopped.unwrap_or(if is_missed { Exit::Failed } else { Exit::Done });
            if args.json {
                output::record(&json::Record::of(Some(peer), &report, (goal, exit)))?;
            } else {
                output::line(&text::report(&report, goal.as_ref()))?;
            }
            Ok(exit)
        }
        Err(failure) if args.json => {
            output::record(&json::Failed::of(host, &failure))?;
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
    }
}

/// Prints intervals as they end.
struct Watcher {
    json: bool,
    headed: bool,
    broken: Option<Failure>,
}

impl Watcher {
    const fn new(json: bool) -> Self {
        Self {
            json,
            headed: false,
            broken: None,
        }
    }

    fn keep(&mut self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.broken.get_or_insert(failure);
        }
    }
}

impl Observer for Watcher {
    fn interval(&mut self, test: &Test, interval: &Interval) {
        if self.json {
            return;
        }
        if !self.headed {
            self.headed = true;
            self.keep(output::line(&text::interval_head(test)));
        }
        self.keep(output::line(&text::interval(test, interval)));
    }

    fn began(&mut self, test: &Test) {
        if self.json {
            self.keep(output::record(&json::Began::of(test)));
        } else {
            eprintln!("fulmar: {}", text::asked(test));
        }
    }

    fn sent(&mut self, streams: &[Sent]) {
        if self.json {
            self.keep(output::record(&json::SentOnly::of(streams)));
            return;
        }
        let sent = Sent::sum(streams);
        let (messages, wire) = (sent.messages, sent.wire_total());
        eprintln!(
            "fulmar: sent {messages} messages, {wire} on the wire; the client has the figures"
        );
    }

    fn ended(&mut self, outcome: &Result<PerfReport, PerfError>) {
        let printed = match outcome {
            Ok(report) if self.json => {
                output::record(&json::Record::of(None, report, (None, Exit::Done)))
            }
            Ok(report) => output::line(&text::report(report, None)),
            Err(error) if self.json => output::record(&json::Cut::of(error)),
            Err(error) => {
                eprintln!("fulmar: the test ended early: {error}");
                Ok(())
            }
        };
        self.keep(printed);
    }
}

/// The address `HOST:PORT` of a host given by `flag`, with its port or without, and of `port`, if that is given by `-p`.
fn address(flag: &str, host: &str, port: Option<u16>) -> Result<String, Failure> {
    let is_bare_v6 = !host.starts_with('[') && host.matches(':').count() > 1;
    if is_bare_v6 {
        return Ok(format!("[{host}]:{}", port.unwrap_or(PORT)));
    }
    match (host.rsplit_once(':'), port) {
        // The colons of `[::1]` are its own.
        (Some((_, own)), _) if own.ends_with(']') => Ok(format!("{host}:{}", port.unwrap_or(PORT))),
        (Some((_, own)), Some(port)) if own.parse() != Ok(port) => {
            let problem = format!("{flag} {host} and -p {port} name two ports; give one of them");
            Err(anyhow!(problem)).or_exit(Exit::Usage)
        }
        (Some(_), _) => Ok(host.to_owned()),
        (None, port) => Ok(format!("{host}:{}", port.unwrap_or(PORT))),
    }
}

fn measure(
    args: &PerfArgs,
    host: &str,
    verbose: u8,
) -> Result<(SocketAddr, PerfReport, Option<Exit>), Failure> {
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let peer = resolve_remote("--client", &address("-c", host, args.port)?)?;
    let credentials = args.security.read(true)?;
    let overhead = connection::lower_overhead(peer, credentials.is_some());
    let connection = args.connection(overhead);
    let plan = ClientPlan {
        test: args.test(&connection)?,
        connection,
        connect_timeout: args.connect_timeout,
        sounding_every: args.sounding,
    };
    let signals = Signals::catch(&[&waker])?;
    let talk = (verbose, args.json);
    let port = PortConfig {
        takes_unchecked: args.security.chooses_checksum(),
        ..PortConfig::for_bound(args.bound())
    };
    let (mut driver, path) = connection::driver_to(peer, port, wake_up, talk)?;
    let mut carrier = EndpointCarrier::new(CarrierPlan {
        rate: args.rate.source(args.mode(), credentials.is_some())?,
        // In a test from the server, the server finds its rate.
        reports_often: args.reverse,
        overhead,
        mtu: args.mtu,
        credentials,
        chooses_checksum: args.security.chooses_checksum(),
        calls: Some(path),
    })?;
    args.security.warn(args.json);
    let path = carrier.inner_path(path);
    let mut client = Client::new(plan, path, signals.stop(), Watcher::new(args.json));
    // The system has chosen the address, which is not asked for.
    let local = match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    let about = format!("fulmar perf to {peer}");
    let capture = connection::capture(args.capture.as_deref(), &driver, &about, local)?;
    let refused = carrier.run_captured(&mut driver, &mut client, args.json, capture.as_ref())?;
    if let Some(failure) = client.observer.broken.take() {
        return Err(failure);
    }
    let stopped = signals.exit();
    match client.take_outcome().unwrap_or(Err(PerfError::Stopped)) {
        Ok(report) => Ok((peer, report, stopped)),
        Err(error) => Err(Failure {
            exit: match error {
                PerfError::Unreachable(_)
                | PerfError::PortClosed
                | PerfError::Refused(_)
                | PerfError::NeedsRate
                | PerfError::NotUnderstood => Exit::Unreachable,
                PerfError::Vanished(_) => Exit::LinkLost,
                PerfError::Connect(_) => Exit::Usage,
                PerfError::Stopped => stopped.unwrap_or(Exit::Failed),
                _ => Exit::Failed,
            },
            cause: match refused {
                // Where a reason was heard, guesses at others would hide it.
                Some(heard) if matches!(error, PerfError::Unreachable(_)) => anyhow!(heard),
                _ => anyhow::Error::new(error),
            }
            .context(format!("perf to {peer}")),
        }),
    }
}

fn serve(args: &PerfArgs, verbose: u8) -> Result<Exit, Failure> {
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let bind = args.bind.as_deref().unwrap_or_default();
    let listen = resolve("--bind", &address("-B", bind, args.port)?)?;
    let signals = Signals::catch(&[&waker])?;
    let port = PortConfig {
        takes_unchecked: args.security.chooses_checksum(),
        ..PortConfig::for_bound(args.bound())
    };
    let talk = (verbose, args.json);
    let (mut driver, listening) = connection::driver_at(listen, port, wake_up, talk)?;
    let credentials = args.security.read(false)?;
    let overhead = connection::lower_overhead(listening, credentials.is_some());
    let mut carrier = EndpointCarrier::new(CarrierPlan {
        rate: RateSource::Found {
            bound: args.bound(),
            first: None,
            sharing: args.rate.share.unwrap_or_default(),
        },
        reports_often: true,
        overhead,
        mtu: args.mtu,
        credentials,
        chooses_checksum: args.security.chooses_checksum(),
        calls: None,
    })?;
    let plan = ServerPlan {
        connection: args.connection(overhead),
        rate_max: args.supposed(),
        sharing: args.rate.share,
        once: args.one_off,
    };
    let watcher = Watcher::new(args.json);
    let mut server = PerfServer::new(plan, carrier.endpoint_mut(), signals.stop(), watcher)
        .map_err(|error| connection::wrong_options(&error))?;
    if args.json {
        output::record(&json::Listening::at(listening))?;
    } else {
        eprintln!("fulmar: waiting for tests on {listening}");
    }
    args.security.warn(args.json);
    let about = format!("fulmar perf at {listening}");
    let capture = connection::capture(args.capture.as_deref(), &driver, &about, listening)?;
    carrier.run_captured(&mut driver, &mut server, args.json, capture.as_ref())?;
    if let Some(failure) = server.observer.broken.take() {
        return Err(failure);
    }
    Ok(signals.exit().unwrap_or(Exit::Done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_stand_with_the_host_or_alone() {
        for (host, port, whole) in [
            ("a.example", None, "a.example:4917"),
            ("a.example", Some(9), "a.example:9"),
            ("a.example:9", None, "a.example:9"),
            ("a.example:9", Some(9), "a.example:9"),
            ("192.0.2.1", None, "192.0.2.1:4917"),
            ("::1", None, "[::1]:4917"),
            ("::1", Some(9), "[::1]:9"),
            ("[::1]", Some(9), "[::1]:9"),
            ("[::1]:9", None, "[::1]:9"),
            ("", Some(0), ":0"),
        ] {
            let made = address("-c", host, port).expect("an address");
            assert_eq!(made, whole, "{host} {port:?}");
        }
        let problem = address("-c", "a.example:9", Some(8)).expect_err("two ports");
        assert_eq!(problem.exit, Exit::Usage);
        assert!(problem.line().contains("-p 8"), "{}", problem.line());
    }
}
