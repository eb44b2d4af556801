//! The keys of `[flow]` that belong to AeroTP.

use super::SettingsError;
use super::read::{copies, narrow, set};
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::Priority;
use fulmar_proto::transport::aerotp::{AckStyle, ConnectionConfig, ModeRules};
use fulmar_proto::units::{ByteCount, Duration, parse_duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use fulmar_settings::{FieldKeys, TableReader, key_of, with_keys};

/// One AeroTP flow.
#[derive(Clone, Copy, Debug)]
pub struct AerotpPlan {
    /// Both ends' settings.
    pub connection: ConnectionConfig,
    /// Whether the endpoint asks for marking instead of dropping. The first flow of an end decides for its
    /// endpoint.
    pub ecn: bool,
    /// The time by which the endpoint's pacer may run ahead. The first flow of an end decides.
    pub burst: Duration,
    /// Whether the endpoint is told the short-term bit error rate that follows from the received power of
    /// the last hop. The first flow of an end decides.
    pub adapt_power: bool,
    /// Whether the endpoint cuts streams shorter where a link drops what is damaged. The first flow of an end decides.
    pub follows_length: bool,
}

/// The keys read here.
pub(super) const KEYS: [&str; 25] = [
    "mode",
    "fec_words",
    "fec_block",
    "fec_block_close",
    "mack",
    "mack_flush",
    "mack_repeats",
    "mack_style",
    "payload_crc",
    "deliver_damaged",
    "window",
    "send_buffer",
    "rto_initial",
    "rto_margin",
    "rto_max",
    "wait_lost",
    "wait_requested",
    "adapt",
    "adapt_power",
    "follow_length",
    "tail_repeats",
    "give_up_after",
    "priority",
    "ecn",
    "burst",
];

/// The keys of the fields that [`ConnectionConfig::payload_bytes`] names, and of those in its problems.
const FIELDS: &FieldKeys = &[
    ("payload_crc", "payload_crc"),
    ("adapt", "adapt"),
    ("copies", "copies"),
    ("ack.every", "mack"),
    ("give_up_after", "give_up_after"),
    ("window_tpdus", "window"),
    ("tpdu_bytes_max", "mtu"),
    ("fec_words", "fec_words"),
    ("block", "fec_block"),
    ("deliver_damaged", "deliver_damaged"),
];

const STYLES: [(&str, AckStyle); 2] = [
    ("cumulative", AckStyle::Cumulative),
    ("listed", AckStyle::Listed),
];

/// The default mode is the one the papers recommend.
fn mode(reader: &TableReader<'_>) -> Result<Mode, SettingsError> {
    let names = Mode::ALL.map(|mode| (mode.name(), mode));
    Ok(reader
        .choice("mode", &names)?
        .unwrap_or(Mode::HybridNackMack))
}

impl AerotpPlan {
    pub(super) fn read(reader: &TableReader<'_>, mtu: ByteCount) -> Result<Self, SettingsError> {
        let plan = Self::values(reader, mtu)?;
        let config = &plan.connection;
        let (mode, rules) = (config.mode, plan.rules());
        if config.adapt.is_some() && !rules.confirms() {
            let problem = format!("the mode {mode} acknowledges nothing; nack-mack does");
            return Err(reader.wrong("adapt", problem));
        }
        if plan.adapt_power && config.adapt.is_none() {
            let problem = "is for flows that follow the bit error rate; write adapt, too";
            return Err(reader.wrong("adapt_power", problem));
        }
        if config.block.is_some() && !rules.blocks {
            let problem =
                format!("the mode {mode} sends no parity across TPDUs; quasi-reliable does");
            return Err(reader.wrong("fec_block", problem));
        }
        if let Err(error) = config.payload_bytes() {
            let key = key_of(FIELDS, error.field);
            return Err(reader.wrong(key.unwrap_or("mtu"), with_keys(FIELDS, &error.problem)));
        }
        Ok(plan)
    }

    /// The settings that the keys give; whether they go together is not checked. No more can be asked of
    /// them in a flow of another transport.
    pub(super) fn values(reader: &TableReader<'_>, mtu: ByteCount) -> Result<Self, SettingsError> {
        let mut config = ConnectionConfig {
            mode: mode(reader)?,
            tpdu_bytes_max: mtu.as_usize().saturating_sub(NETWORK_HEADER_BYTES),
            ..ConnectionConfig::default()
        };
        if let Some(words) = reader.whole("fec_words", 0..=256)? {
            config.fec_words = FecStrength::from_words(narrow(words)).unwrap_or_default();
        }
        config.adapt = adapt(reader)?;
        config.block = block(reader)?;
        if config.block.is_none() {
            // Both ends know that no parity across TPDUs comes.
            config.hole_waits.parity = Duration::ZERO;
        }
        config.copies = copies(reader)?;
        read_acks(&mut config, reader)?;
        read_waits(&mut config, reader)?;
        set(&mut config.payload_crc, reader.value("payload_crc")?);
        set(
            &mut config.deliver_damaged,
            reader.value("deliver_damaged")?,
        );
        let window = reader.whole("window", 2..=32_768)?;
        set(&mut config.window_tpdus, window.map(narrow));
        let buffer: Option<ByteCount> = reader.value("send_buffer")?;
        set(
            &mut config.send_buffer_bytes,
            buffer.map(ByteCount::as_usize),
        );
        if let Some(priority) = reader.whole("priority", 0..=63)? {
            config.priority = Priority(narrow(priority));
        }
        Ok(Self {
            connection: config,
            ecn: reader.value_or("ecn", true)?,
            burst: reader.duration("burst")?.unwrap_or_default(),
            adapt_power: reader.value_or("adapt_power", false)?,
            follows_length: reader.value_or("follow_length", false)?,
        })
    }

    /// Payload octets of one TPDU; none if the settings cannot work, which reading them refuses.
    pub fn payload(&self) -> ByteCount {
        ByteCount::from_usize(self.connection.payload_bytes().unwrap_or_default())
    }

    /// The mode's row of the table.
    pub const fn rules(&self) -> ModeRules {
        ModeRules::of(self.connection.mode)
    }
}

/// Configurations are compared by what they print, since parts of them have no equality.
impl PartialEq for AerotpPlan {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

fn read_acks(config: &mut ConnectionConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    let ack = &mut config.ack;
    set(&mut ack.every, reader.whole("mack", 1..=365)?.map(narrow));
    let repeats = reader.whole("mack_repeats", 0..=u64::from(u16::MAX))?;
    set(&mut ack.repeats, repeats.map(narrow));
    set(&mut ack.flush, reader.duration("mack_flush")?);
    set(&mut ack.style, reader.choice("mack_style", &STYLES)?);
    Ok(())
}

fn read_waits(
    config: &mut ConnectionConfig,
    reader: &TableReader<'_>,
) -> Result<(), SettingsError> {
    set(&mut config.rto.initial, reader.duration("rto_initial")?);
    set(&mut config.rto.margin, reader.duration("rto_margin")?);
    set(&mut config.rto.max, reader.duration("rto_max")?);
    set(&mut config.hole_waits.lost, reader.duration("wait_lost")?);
    set(
        &mut config.hole_waits.requested,
        reader.duration("wait_requested")?,
    );
    let repeats = reader.whole("tail_repeats", 0..=1000)?;
    set(&mut config.tail_repeats, repeats.map(narrow));
    set(&mut config.give_up_after, reader.duration("give_up_after")?);
    Ok(())
}

/// `adapt = "4ms"`: the channel's coherence time.
fn adapt(reader: &TableReader<'_>) -> Result<Option<Duration>, SettingsError> {
    let text = reader.text("adapt")?.filter(|text| *text != "off");
    text.map(parse_duration).transpose().map_err(|error| {
        let problem = format!("{error}; write the channel's coherence time, such as 4ms, or off");
        reader.wrong("adapt", problem)
    })
}

/// `fec_block = "20+4"`: 4 repair symbols for every 20 TPDUs.
fn block(reader: &TableReader<'_>) -> Result<Option<BlockPlan>, SettingsError> {
    const FORM: &str = "write sources+repairs, such as 20+4, 256 together at most, or none";
    /// Half the round trip of a continental link: a block must not wait for a slow application.
    const CLOSE: Duration = Duration::from_millis(20);
    let close = reader.duration("fec_block_close")?.unwrap_or(CLOSE);
    let Some(text) = reader.text("fec_block")?.filter(|text| *text != "none") else {
        return Ok(None);
    };
    let parsed = text.split_once('+').and_then(|(k, repairs)| {
        let k: NonZeroU8 = k.trim().parse().ok()?;
        BlockPlan::new(k, repairs.trim().parse().ok()?, close)
    });
    match parsed {
        Some(plan) => Ok(Some(plan)),
        None => Err(reader.wrong("fec_block", format!("`{text}` is not a block; {FORM}"))),
    }
}
