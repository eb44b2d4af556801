//! The keys of `[lt_tcp]` and `[flow.lt_tcp]`.

use super::SettingsError;
use super::read::{narrow, set};
use fulmar_baseline::lt_tcp::LtTcpConfig;
use fulmar_baseline::wire::tcp::TCP_HEADER_BYTES;
use fulmar_proto::units::{ByteCount, Probability};
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use fulmar_settings::{FieldKeys, Keys, TableReader, key_of, with_keys};

/// One LT-TCP flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LtTcpPlan {
    /// Both ends' settings.
    pub config: LtTcpConfig,
}

/// The keys read here.
pub(super) const KEYS: Keys = &[&[
    "unit_min",
    "granularity",
    "units_max",
    "pfec",
    "rfec",
    "loss_deviations",
    "loss_floor",
    "loss_gain",
    "initial_window",
    "ack_every",
    "delayed_ack",
    "ecn",
    "rto_initial",
    "rto_min",
    "rto_max",
    "syn_retries",
    "data_retries",
    "receive_buffer",
    "send_buffer",
    "time_wait",
]];

/// The keys of the fields that [`LtTcpConfig::check`] names. No key sets `mss`: it follows from the MTU.
const FIELDS: &FieldKeys = &[
    ("mss", "mtu - 40B"),
    ("unit_min", "unit_min"),
    ("granularity", "granularity"),
    ("units_max", "units_max"),
    ("fec.proactive", "pfec"),
    ("fec.reactive", "rfec"),
    ("fec.gain", "loss_gain"),
    ("fec.deviations", "loss_deviations"),
    ("initial_window", "initial_window"),
    ("ack_every", "ack_every"),
    ("receive_buffer", "receive_buffer"),
    ("send_buffer", "send_buffer"),
    ("rto.initial", "rto_initial"),
    ("rto.min", "rto_min"),
    ("rto.max", "rto_max"),
];

/// The shortest MTU that leaves a unit room beside the headers.
const MTU_MIN: u64 = 128;

impl LtTcpPlan {
    /// Reads the settings of a flow: those of `[lt_tcp]`, then those of `[flow.lt_tcp]`.
    pub(super) fn read(
        flow: &TableReader<'_>,
        tables: &[&TableReader<'_>],
        mtu: ByteCount,
    ) -> Result<Self, SettingsError> {
        if mtu.0 < MTU_MIN {
            let problem = format!("`{mtu}` must be at least {MTU_MIN}B with lt-tcp");
            return Err(flow.wrong("mtu", problem));
        }
        let headers = NETWORK_HEADER_BYTES + TCP_HEADER_BYTES;
        let mut config = LtTcpConfig::default();
        config.mss = u16::try_from(mtu.as_usize().saturating_sub(headers)).unwrap_or(u16::MAX);
        config.unit_min = config.unit_min.min(config.unit_max());
        for reader in tables {
            read_blocks(&mut config, reader)?;
            read_rest(&mut config, reader)?;
            if let Err(error) = config.check() {
                let key = key_of(FIELDS, error.field);
                return Err(
                    reader.wrong(key.unwrap_or("unit_min"), with_keys(FIELDS, &error.problem))
                );
            }
        }
        if let Err(error) = config.check() {
            return Err(flow.wrong("mtu", with_keys(FIELDS, &error.to_string())));
        }
        Ok(Self { config })
    }

    /// Octets of the longest unit.
    pub fn payload(&self) -> ByteCount {
        ByteCount(u64::from(self.config.unit_max()))
    }
}

fn read_blocks(config: &mut LtTcpConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    if let Some(unit) = reader.value::<ByteCount>("unit_min")? {
        config.unit_min = u16::try_from(unit.0).unwrap_or(u16::MAX);
    }
    let units = reader.whole("granularity", 1..=255)?;
    set(&mut config.granularity, units.map(narrow));
    let units = reader.whole("units_max", 1..=255)?;
    set(&mut config.units_max, units.map(narrow));
    let fec = &mut config.fec;
    set(&mut fec.proactive, reader.value::<Probability>("pfec")?);
    set(&mut fec.reactive, reader.value::<Probability>("rfec")?);
    set(&mut fec.deviations, reader.value("loss_deviations")?);
    set(&mut fec.floor, reader.value::<Probability>("loss_floor")?);
    set(&mut fec.gain, reader.value::<Probability>("loss_gain")?);
    Ok(())
}

fn read_rest(config: &mut LtTcpConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    let segments = reader.whole("initial_window", 1..=1000)?;
    set(&mut config.initial_window, segments.map(narrow));
    let every = reader.whole("ack_every", 1..=255)?;
    set(&mut config.ack_every, every.map(narrow));
    set(&mut config.ack_delay, reader.duration("delayed_ack")?);
    set(&mut config.ecn, reader.value("ecn")?);
    set(&mut config.rto.initial, reader.duration("rto_initial")?);
    set(&mut config.rto.min, reader.duration("rto_min")?);
    set(&mut config.rto.max, reader.duration("rto_max")?);
    let retries = reader.whole("syn_retries", 0..=100)?;
    set(&mut config.syn_retries, retries.map(narrow));
    let retries = reader.whole("data_retries", 0..=255)?;
    set(&mut config.data_retries, retries.map(narrow));
    set(&mut config.receive_buffer, reader.value("receive_buffer")?);
    set(&mut config.send_buffer, reader.value("send_buffer")?);
    set(&mut config.time_wait, reader.duration("time_wait")?);
    Ok(())
}
