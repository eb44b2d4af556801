//! Two TCPs under an arbitrary list of operations: whatever the medium, the applications and forgers do, neither
//! panics, each input is answered by a bounded number of segments, and memory stays within what the settings allow.
//! As long as nobody forges, what is read is a prefix of what was written. Another connection between the two, which
//! nobody can forge, is not harmed.

#![no_main]

mod stream_pair;

use arbitrary::Arbitrary;
use fulmar_baseline::tcp::{Algorithm, ReduceFrom, TcpConfig, TcpEndpoint, TcpPreset};
use fulmar_baseline::wire::tcp::{AddressPair, TcpHeader, Timestamps};
use fulmar_proto::units::{ByteCount, Duration};
use libfuzzer_sys::fuzz_target;
use stream_pair::{
    ANSWERS_MAX, BYSTANDER_BYTES, CONNECTIONS_MAX, Distance, ForgedHeader, Fuzzed, Limits, Step,
    addresses_from, forged_run, octets,
};

#[derive(Arbitrary, Debug)]
struct Plan {
    ends: [Settings; 2],
    steps: Vec<Step<Forgery>>,
}

#[derive(Arbitrary, Debug)]
struct Settings {
    preset: u8,
    /// Each bit turns one option around.
    turned: u32,
    algorithm: u8,
    reduce: u8,
    initial_window: u8,
    duplicates: u8,
    ack_every: u8,
    delayed_ack: u8,
    mss: u8,
    receive_buffer: u16,
    send_buffer: u16,
    retries: u8,
    seed: u8,
}

#[derive(Arbitrary, Debug)]
pub struct Forgery {
    header: ForgedHeader,
    sack_permitted: bool,
    timestamps: Option<(Distance, Distance)>,
    blocks: Vec<(Distance, Distance)>,
    octets: u16,
}

/// The most that an endpoint takes besides its connections: answers, events and lessons.
const ENDPOINT_BYTES_MAX: usize = 65_536;

fn config(settings: &Settings) -> TcpConfig {
    let (_, preset) = TcpPreset::ALL[usize::from(settings.preset) % TcpPreset::ALL.len()];
    let mut config = preset.config();
    let options = [
        &mut config.recovery.sack,
        &mut config.recovery.limited_transmit,
        &mut config.recovery.rescue,
        &mut config.recovery.rate_reduction,
        &mut config.recovery.frto,
        &mut config.recovery.careful,
        &mut config.growth.byte_counting,
        &mut config.growth.validation,
        &mut config.growth.at_recovery_end,
        &mut config.growth.at_repair_end,
        &mut config.growth.restart_after_idle,
        &mut config.timestamps,
        &mut config.window_scaling,
        &mut config.ecn,
        &mut config.nagle,
        &mut config.keep_out_of_order,
        &mut config.acks.after_slow_start,
    ];
    for (bit, option) in options.into_iter().enumerate() {
        *option ^= settings.turned >> bit & 1 == 1;
    }
    let algorithms = [
        Algorithm::NewReno,
        Algorithm::Cubic,
        Algorithm::Cubic2018,
        Algorithm::None,
    ];
    config.growth.algorithm = algorithms[usize::from(settings.algorithm % 4)];
    config.recovery.reduce = [ReduceFrom::Flight, ReduceFrom::Pipe, ReduceFrom::Window]
        [usize::from(settings.reduce % 3)];
    config.growth.initial_window = u16::from(settings.initial_window % 16) + 1;
    config.recovery.duplicates = settings.duplicates % 6;
    config.acks.every = settings.ack_every % 4 + 1;
    config.acks.time = Duration::from_millis(u64::from(settings.delayed_ack));
    config.mss = 64 + u16::from(settings.mss);
    config.receive_buffer = ByteCount(u64::from(settings.receive_buffer % 20_000) + 400);
    config.send_buffer = ByteCount(u64::from(settings.send_buffer % 20_000) + 400);
    config.syn_retries = settings.retries % 8;
    config.data_retries = settings.retries % 16;
    config.sharing.ssthresh = settings.retries & 0x10 != 0;
    config.sharing.rtt = settings.retries & 0x20 != 0;
    config
}

impl Fuzzed for TcpEndpoint {
    type Forgery = Forgery;

    fn bystander() -> TcpConfig {
        let mut config = TcpPreset::NewReno2005.config();
        config.send_buffer = ByteCount(BYSTANDER_BYTES as u64);
        config.receive_buffer = ByteCount(BYSTANDER_BYTES as u64);
        config
    }

    fn limits(config: &TcpConfig) -> Limits {
        // A peer may ask for segments of a few octets.
        let answers =
            CONNECTIONS_MAX * (config.send_buffer.as_usize() + BYSTANDER_BYTES) + ANSWERS_MAX;
        let connection = Self::connection_memory_max(config)
            .max(Self::connection_memory_max(&Self::bystander()));
        let memory_bytes = CONNECTIONS_MAX * connection + ENDPOINT_BYTES_MAX;
        Limits {
            answers,
            memory_bytes,
        }
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn header(addresses: &AddressPair, segment: &[u8]) -> Option<TcpHeader> {
        TcpHeader::parse(addresses, segment)
            .ok()
            .map(|segment| segment.header)
    }

    fn forge(side: usize, last: &TcpHeader, forgery: &Forgery) -> Vec<u8> {
        let mut header = forgery.header.of(last);
        header.options.sack_permitted = forgery.sack_permitted;
        header.options.timestamps = forgery.timestamps.as_ref().map(|(value, echo)| {
            let last = last
                .options
                .timestamps
                .unwrap_or(Timestamps { value: 0, echo: 0 });
            Timestamps {
                value: value.of(last.value),
                echo: echo.of(last.echo),
            }
        });
        header.options.sack = Default::default();
        let room = header.options.sack_room();
        for run in forgery.blocks.iter().take(room) {
            let block = forged_run(&header, run);
            header.options.sack.push(block);
        }
        let payload = octets(side, 0, usize::from(forgery.octets % 2_000));
        let mut out = Vec::new();
        header.write(&addresses_from(side), &payload, &mut out);
        out
    }
}

fuzz_target!(|plan: Plan| {
    let settings = plan.ends.each_ref().map(config);
    stream_pair::run::<TcpEndpoint>(
        settings,
        plan.ends.each_ref().map(|end| end.seed),
        &plan.steps,
    );
});
