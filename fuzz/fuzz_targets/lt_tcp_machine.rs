//! Two LT-TCPs under an arbitrary list of operations: whatever the medium, the applications and forgers do, neither
//! panics, each input is answered by a bounded number of segments, and memory stays within what the settings allow. As
//! long as nobody forges, what is read is a prefix of what was written. Another connection between the two, which nobody
//! can forge, is not harmed.

#![no_main]

mod stream_pair;

use arbitrary::Arbitrary;
use fulmar_baseline::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_baseline::wire::lt_tcp::{
    Extension, LtSegment, LtTcpBlockReport, LtTcpFeedback, UnitHeader, write_segment,
};
use fulmar_baseline::wire::tcp::{AddressPair, TcpHeader};
use fulmar_proto::units::{ByteCount, Probability};
use libfuzzer_sys::fuzz_target;
use stream_pair::{
    ANSWERS_MAX, BYSTANDER_BYTES, CONNECTIONS_MAX, Distance, ForgedHeader, Fuzzed, Limits, Step,
    addresses_from, forged_run,
};

/// The most that an endpoint takes besides its connections: answers that wait, and events.
const ENDPOINT_BYTES_MAX: usize = 65_536;

#[derive(Arbitrary, Debug)]
struct Plan {
    ends: [Settings; 2],
    steps: Vec<Step<Forgery>>,
}

#[derive(Arbitrary, Debug)]
struct Settings {
    mss: u8,
    granularity: u8,
    units_max: u8,
    proactive: u8,
    reactive: u8,
    ack_every: u8,
    ecn: bool,
    receive_buffer: u16,
    send_buffer: u16,
    retries: u8,
    seed: u8,
}

#[derive(Arbitrary, Debug)]
pub struct Forgery {
    header: ForgedHeader,
    behind: Behind,
}

#[derive(Arbitrary, Debug)]
pub enum Behind {
    Nothing,
    Unit {
        index: u8,
        ordinal: u16,
        block: u16,
        k: u8,
        n: u8,
        length: u16,
    },
    Feedback {
        arrived_end: u16,
        arrivals: u16,
        loss: u16,
        deviation: u16,
        reports: Vec<(u8, u8, u8, u8)>,
        runs: Vec<(Distance, Distance)>,
    },
}

fn config(settings: &Settings) -> LtTcpConfig {
    let share = |octet: u8| Probability::new(0.99 * f64::from(octet) / 255.0).unwrap_or_default();
    let mut config = LtTcpConfig::default();
    config.mss = 300 + 4 * u16::from(settings.mss);
    config.unit_min = 64;
    config.granularity = settings.granularity % 20 + 1;
    config.units_max = config.granularity + settings.units_max % 140;
    config.fec.proactive = share(settings.proactive);
    config.fec.reactive = share(settings.reactive);
    config.ack_every = settings.ack_every % 4 + 1;
    config.ecn = settings.ecn;
    config.receive_buffer = ByteCount(u64::from(settings.receive_buffer % 20_000) + 2_000);
    config.send_buffer = ByteCount(u64::from(settings.send_buffer % 20_000) + 2_000);
    config.syn_retries = settings.retries % 8;
    config.data_retries = settings.retries % 16;
    config
}

impl Fuzzed for LtTcpEndpoint {
    type Forgery = Forgery;

    fn bystander() -> LtTcpConfig {
        LtTcpConfig {
            send_buffer: ByteCount(BYSTANDER_BYTES as u64),
            receive_buffer: ByteCount(BYSTANDER_BYTES as u64),
            ..LtTcpConfig::default()
        }
    }

    fn limits(config: &LtTcpConfig) -> Limits {
        let connection = Self::connection_memory_max(config)
            .max(Self::connection_memory_max(&Self::bystander()));
        Limits {
            // A block may have 256 units for any number of octets, and its retransmission as many.
            answers: CONNECTIONS_MAX * 64 * 256 + ANSWERS_MAX,
            memory_bytes: CONNECTIONS_MAX * connection + ENDPOINT_BYTES_MAX,
        }
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn header(addresses: &AddressPair, segment: &[u8]) -> Option<TcpHeader> {
        LtSegment::parse(addresses, segment)
            .ok()
            .map(|segment| segment.header)
    }

    fn forge(side: usize, last: &TcpHeader, forgery: &Forgery) -> Vec<u8> {
        let header = forgery.header.of(last);
        let mut content = Vec::new();
        let extension = match &forgery.behind {
            Behind::Nothing => Extension::None,
            &Behind::Unit {
                index,
                ordinal,
                block,
                k,
                n,
                length,
            } => {
                let length = u32::from(length % 5_000) + 1;
                let unit = UnitHeader {
                    index,
                    ordinal,
                    block,
                    k,
                    n,
                    length,
                };
                content.resize(unit.payload_len(), 7);
                Extension::Unit(unit, &content)
            }
            Behind::Feedback {
                arrived_end,
                arrivals,
                loss,
                deviation,
                reports,
                runs,
            } => {
                let report =
                    |&(block, received, needed, lost): &(u8, u8, u8, u8)| LtTcpBlockReport {
                        block: u16::from(block),
                        received,
                        needed,
                        lost,
                    };
                Extension::Feedback(LtTcpFeedback {
                    arrived_end: *arrived_end,
                    arrivals: *arrivals,
                    loss: *loss,
                    deviation: *deviation,
                    reports: reports.iter().take(15).map(report).collect(),
                    runs: runs
                        .iter()
                        .take(4)
                        .map(|run| forged_run(&header, run))
                        .collect(),
                })
            }
        };
        let mut out = Vec::new();
        write_segment(
            &header,
            &extension,
            &addresses_from(side),
            &mut Vec::new(),
            &mut out,
        );
        out
    }
}

fuzz_target!(|plan: Plan| {
    let settings = plan.ends.each_ref().map(config);
    stream_pair::run::<LtTcpEndpoint>(
        settings,
        plan.ends.each_ref().map(|end| end.seed),
        &plan.steps,
    );
});
