//! The keys of `[flow]` that belong to AeroTP.

use super::SettingsError;
use super::read::{copies, narrow, set};
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::{Priority, TpduForm};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::{AckStyle, ConnectionConfig, ModeRules, ThinRepair};
use fulmar_proto::units::{ByteCount, Duration, parse_duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use fulmar_settings::goal::{self, GoalContext};
use fulmar_settings::{FieldKeys, TableReader, key_of, with_keys};

/// The choice of a flow's repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairChoice {
    /// It follows the flow's goal: the mode `auto`.
    ByGoal,
    /// It is that of a named mode.
    Named,
}

/// One AeroTP flow.
#[derive(Clone, Copy, Debug)]
pub struct AerotpPlan {
    /// Both ends' settings.
    pub connection: ConnectionConfig,
    /// Whether the repair is chosen.
    pub repair: RepairChoice,
    /// The form of TPDUs: the short one is that of a session, under a seal. The first flow of an end decides.
    pub form: TpduForm,
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
pub(super) const KEYS: [&str; 31] = [
    "mode",
    "deliver",
    "deadline",
    "residual",
    "overhead",
    "order",
    "sealed",
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

const ORDERS: [(&str, DeliveryOrder); 2] =
    [("kept", DeliveryOrder::Kept), ("any", DeliveryOrder::Any)];

/// The octets that a session and UDP put around content, beyond the network header: 8 of UDP, 8 of the session's header and
/// 16 of its tag.
pub const SEAL_BYTES: usize = 32;

/// The mode that `auto` has beside its choices, as between gateways.
const AUTO: Mode = Mode::HybridNackMack;
/// TPDUs to one answer with `auto`, as gateways have it.
const ACK_EVERY: u16 = 32;

/// The transport that AeroTP's settings are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// AeroTP itself.
    Bare,
    /// AeroTP between gateways.
    Gateway,
    /// Another transport, for which the settings need only be valid.
    Other,
}

/// The mode, if it is a named one. The default mode is the one the papers recommend.
fn mode(reader: &TableReader<'_>) -> Result<Option<Mode>, SettingsError> {
    let names = Mode::ALL.map(|mode| (mode.name(), Some(mode)));
    let names: Vec<_> = [("auto", None)].into_iter().chain(names).collect();
    Ok(reader
        .choice("mode", &names)?
        .unwrap_or(Some(Mode::HybridNackMack)))
}

impl AerotpPlan {
    pub(super) fn read(
        reader: &TableReader<'_>,
        mtu: ByteCount,
        carrier: Carrier,
    ) -> Result<Self, SettingsError> {
        let plan = Self::values(reader, mtu, carrier)?;
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
    pub(super) fn values(
        reader: &TableReader<'_>,
        mtu: ByteCount,
        carrier: Carrier,
    ) -> Result<Self, SettingsError> {
        let mode = mode(reader)?;
        let is_auto = mode.is_none();
        let sealed = reader.value("sealed")?;
        if sealed == Some(true) && carrier == Carrier::Gateway {
            let problem = "is for aerotp alone; between gateways TPDUs have their long form here";
            return Err(reader.wrong("sealed", problem));
        }
        let sealed = sealed.unwrap_or(is_auto && carrier == Carrier::Bare);
        let seal = if sealed { SEAL_BYTES } else { 0 };
        let mut config = ConnectionConfig {
            mode: mode.unwrap_or(AUTO),
            tpdu_bytes_max: mtu.as_usize().saturating_sub(NETWORK_HEADER_BYTES + seal),
            thin: thin(reader, is_auto, carrier)?,
            ..ConnectionConfig::default()
        };
        if is_auto {
            config.ack.every = ACK_EVERY;
        }
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
            repair: if is_auto {
                RepairChoice::ByGoal
            } else {
                RepairChoice::Named
            },
            form: if sealed {
                TpduForm::Short
            } else {
                TpduForm::Long
            },
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

    /// Whether the mode is `auto`.
    pub fn is_auto(&self) -> bool {
        self.repair == RepairChoice::ByGoal
    }

    /// Whether packets are those of a session.
    pub fn is_sealed(&self) -> bool {
        self.form == TpduForm::Short
    }

    /// The goal, if the flow has one.
    pub fn goal(&self) -> Option<DeliveryGoal> {
        self.connection.thin.and_then(|thin| thin.goal())
    }

    /// Whether every octet arrives, in order.
    pub fn is_complete(&self) -> bool {
        let in_order = self
            .goal()
            .is_none_or(|goal| goal.order == DeliveryOrder::Kept);
        self.rules().complete && in_order
    }
}

/// Configurations are compared by what they print, since parts of them have no equality.
impl PartialEq for AerotpPlan {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// The repair of thin flows: that of the goal with `auto`, and with a named mode what `overhead` allows, if it is said.
fn thin(
    reader: &TableReader<'_>,
    is_auto: bool,
    carrier: Carrier,
) -> Result<Option<ThinRepair>, SettingsError> {
    let order = reader.choice("order", &ORDERS)?;
    if let Some(DeliveryOrder::Any) = order {
        let problem = match (is_auto, carrier) {
            (false, _) => Some(
                "is a goal, which a named mode does not follow; write mode = \"auto\", or remove it",
            ),
            (true, Carrier::Gateway) => Some("cannot be any: a gateway carries a stream"),
            (true, _) if !reader.has("deadline") => {
                Some("needs a deadline; write deadline = \"150ms\", or remove it")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(reader.wrong("order", problem));
        }
    }
    let context = GoalContext {
        is_auto,
        deadline: reader.duration("deadline")?,
        order: order.unwrap_or_default(),
        deliver: Deliver::ByDeadline,
        overhead: None,
    };
    let thin = goal::thin_repair(reader, &context)?;
    Ok(thin.or_else(|| is_auto.then(ThinRepair::default)))
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
