//! The keys of `[tcp]` and `[flow.tcp]`.

use super::SettingsError;
use super::read::{narrow, set};
use core::num::NonZeroU8;
use fulmar_baseline::tcp::{Algorithm, ReduceFrom, RtoRule, TcpConfig, TcpPreset};
use fulmar_baseline::wire::tcp::TCP_HEADER_BYTES;
use fulmar_proto::units::ByteCount;
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use fulmar_settings::{FieldKeys, Keys, TableReader, key_of, with_keys};

/// One TCP flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// Both ends' settings.
    pub config: TcpConfig,
}

/// The keys read here.
pub(super) const KEYS: Keys = &[&[
    "preset",
    "congestion",
    "mss",
    "initial_window",
    "byte_counting",
    "window_validation",
    "growth_at_recovery_end",
    "growth_at_repair_end",
    "restart_after_idle",
    "delayed_ack",
    "ack_every",
    "ack_after_slow_start",
    "ack_first_at_once",
    "sack",
    "duplicates",
    "limited_transmit",
    "rescue",
    "rate_reduction",
    "frto",
    "careful",
    "reduce",
    "share_ssthresh",
    "share_rtt",
    "rto_initial",
    "rto_min",
    "rto_max",
    "rto_rule",
    "rto_granularity",
    "samples_of_retransmissions",
    "syn_retries",
    "data_retries",
    "window_scaling",
    "timestamps",
    "ecn",
    "nagle",
    "keep_out_of_order",
    "runs_kept",
    "receive_buffer",
    "send_buffer",
    "unsent",
    "time_wait",
]];

/// The keys of the fields that [`TcpConfig::check`] names.
const FIELDS: &FieldKeys = &[
    ("mss", "mss"),
    ("growth.initial_window", "initial_window"),
    ("acks.every", "ack_every"),
    ("receive_buffer", "receive_buffer"),
    ("send_buffer", "send_buffer"),
    ("unsent_max", "unsent"),
    ("rto.initial", "rto_initial"),
    ("rto.min", "rto_min"),
    ("rto.max", "rto_max"),
];

const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("newreno", Algorithm::NewReno),
    ("cubic", Algorithm::Cubic),
    ("cubic-rfc8312", Algorithm::Cubic2018),
    ("none", Algorithm::None),
];
const REDUCTIONS: [(&str, ReduceFrom); 3] = [
    ("flight", ReduceFrom::Flight),
    ("pipe", ReduceFrom::Pipe),
    ("window", ReduceFrom::Window),
];

impl TcpPlan {
    /// Reads the settings of a flow: those of its preset, then those of `[tcp]`, then those of
    /// `[flow.tcp]`; a preset named later begins anew.
    pub(super) fn read(tables: &[&TableReader<'_>], mtu: ByteCount) -> Result<Self, SettingsError> {
        let headers = NETWORK_HEADER_BYTES + TCP_HEADER_BYTES;
        // The shortest mtu leaves room for both headers.
        let mss = u16::try_from(mtu.as_usize().saturating_sub(headers)).unwrap_or(u16::MAX);
        let begin = |preset: TcpPreset| TcpConfig {
            mss,
            ..preset.config()
        };
        let mut config = begin(TcpPreset::LinuxLike);
        for reader in tables {
            if let Some(preset) = reader.choice("preset", &TcpPreset::ALL)? {
                config = begin(preset);
            }
            read_window(&mut config, reader, mss)?;
            read_repair(&mut config, reader)?;
            read_options(&mut config, reader)?;
            if let Err(error) = config.check() {
                let key = key_of(FIELDS, error.field);
                return Err(
                    reader.wrong(key.unwrap_or("preset"), with_keys(FIELDS, &error.problem))
                );
            }
        }
        Ok(Self { config })
    }

    /// Payload octets of one segment, if the ends agree on what they ask for.
    pub fn payload(&self) -> ByteCount {
        let timestamps = if self.config.timestamps { 12 } else { 0 };
        ByteCount(u64::from(self.config.mss) - timestamps)
    }
}

fn read_window(
    config: &mut TcpConfig,
    reader: &TableReader<'_>,
    mss_max: u16,
) -> Result<(), SettingsError> {
    if let Some(mss) = reader.value::<ByteCount>("mss")? {
        if mss.0 > u64::from(mss_max) {
            let problem = format!("`{mss}` must be at most {mss_max}B, the mtu less 40B");
            return Err(reader.wrong("mss", problem));
        }
        config.mss = narrow(mss.0);
    }
    let growth = &mut config.growth;
    set(
        &mut growth.algorithm,
        reader.choice("congestion", &ALGORITHMS)?,
    );
    let segments = reader.whole("initial_window", 1..=1000)?;
    set(&mut growth.initial_window, segments.map(narrow));
    set(&mut growth.byte_counting, reader.value("byte_counting")?);
    set(&mut growth.validation, reader.value("window_validation")?);
    set(
        &mut growth.at_recovery_end,
        reader.value("growth_at_recovery_end")?,
    );
    set(
        &mut growth.at_repair_end,
        reader.value("growth_at_repair_end")?,
    );
    set(
        &mut growth.restart_after_idle,
        reader.value("restart_after_idle")?,
    );
    set(&mut config.receive_buffer, reader.value("receive_buffer")?);
    set(&mut config.send_buffer, reader.value("send_buffer")?);
    if let Some(unsent) = reader.value("unsent")? {
        config.unsent_max = Some(unsent);
    }
    set(
        &mut config.sharing.ssthresh,
        reader.value("share_ssthresh")?,
    );
    set(&mut config.sharing.rtt, reader.value("share_rtt")?);
    Ok(())
}

fn read_repair(config: &mut TcpConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    let recovery = &mut config.recovery;
    set(&mut recovery.sack, reader.value("sack")?);
    let duplicates = reader.whole("duplicates", 0..=100)?;
    set(&mut recovery.duplicates, duplicates.map(narrow));
    set(
        &mut recovery.limited_transmit,
        reader.value("limited_transmit")?,
    );
    set(&mut recovery.rescue, reader.value("rescue")?);
    set(
        &mut recovery.rate_reduction,
        reader.value("rate_reduction")?,
    );
    set(&mut recovery.frto, reader.value("frto")?);
    set(&mut recovery.careful, reader.value("careful")?);
    set(&mut recovery.reduce, reader.choice("reduce", &REDUCTIONS)?);
    set(&mut config.rto.initial, reader.duration("rto_initial")?);
    set(&mut config.rto.min, reader.duration("rto_min")?);
    set(&mut config.rto.max, reader.duration("rto_max")?);
    set(
        &mut config.rto_rule,
        reader.choice("rto_rule", &RtoRule::ALL)?,
    );
    set(
        &mut config.rto_rule.granularity,
        reader.duration("rto_granularity")?,
    );
    set(
        &mut config.samples_of_retransmissions,
        reader.value("samples_of_retransmissions")?,
    );
    let retries = reader.whole("syn_retries", 0..=100)?;
    set(&mut config.syn_retries, retries.map(narrow));
    let retries = reader.whole("data_retries", 0..=255)?;
    set(&mut config.data_retries, retries.map(narrow));
    Ok(())
}

fn read_options(config: &mut TcpConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    let acks = &mut config.acks;
    set(&mut acks.time, reader.duration("delayed_ack")?);
    let every = reader.whole("ack_every", 1..=255)?;
    set(&mut acks.every, every.map(narrow));
    set(
        &mut acks.after_slow_start,
        reader.value("ack_after_slow_start")?,
    );
    set(&mut acks.first_at_once, reader.value("ack_first_at_once")?);
    set(&mut config.window_scaling, reader.value("window_scaling")?);
    set(&mut config.timestamps, reader.value("timestamps")?);
    set(&mut config.ecn, reader.value("ecn")?);
    set(&mut config.nagle, reader.value("nagle")?);
    set(
        &mut config.keep_out_of_order,
        reader.value("keep_out_of_order")?,
    );
    if let Some(runs) = reader.whole("runs_kept", 1..=255)? {
        config.runs_kept_max = NonZeroU8::new(narrow(runs));
    }
    set(&mut config.time_wait, reader.duration("time_wait")?);
    Ok(())
}
