//! `[class.NAME]`: how flows are treated, and which flow gets which class.

use super::notation::{Dscp, Ports};
use core::num::NonZeroU8;
use core::time::Duration;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::Priority;
use fulmar_proto::repair::Deliver;
use fulmar_proto::splice::{ClassId, FlowClass};
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::ByteCount;
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_settings::{SettingsError, TableReader};

/// The class of flows for which no rule names another.
pub const DEFAULT_CLASS: &str = "default";

/// The place where octets are kept until the destination has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustodyPlace {
    /// Nothing is kept beyond the window.
    None,
    /// Octets in memory survive outages.
    Memory,
    /// Octets on disk survive the gateway too.
    Disk,
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    /// Its name.
    pub name: String,
    /// Whether the repair follows a goal and what is measured, in the mode that `flow` names.
    pub is_auto: bool,
    /// The settings that travel with every flow of it.
    pub flow: FlowClass,
    /// The place where the ingress keeps octets.
    pub custody: CustodyPlace,
    /// The most octets of one flow in custody.
    pub keep: ByteCount,
}

impl ClassSettings {
    /// Whether its mode delivers everything, as streams need.
    pub const fn is_complete(&self) -> bool {
        ModeRules::of(self.flow.mode).complete
    }
}

/// The rules that give a flow its class: by code point, else by destination port, else the general one.
/// Classes are indices into the configuration's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRules {
    /// The class of all other flows.
    pub general: usize,
    /// Classes by destination port; the first range that contains it counts.
    pub ports: Vec<(Ports, usize)>,
    /// Classes by the code point of the client's first packet.
    pub dscp: Vec<(Dscp, usize)>,
}

impl ClassRules {
    /// The class of a flow to `port` whose first packet carried `dscp`, as far as that is known.
    pub fn choose(&self, port: u16, dscp: Option<Dscp>) -> usize {
        let by_dscp = || {
            let dscp = dscp?;
            self.dscp.iter().find(|(point, _)| *point == dscp)
        };
        let by_port = || self.ports.iter().find(|(ports, _)| ports.0.contains(&port));
        by_dscp()
            .map(|(_, class)| *class)
            .or_else(|| by_port().map(|(_, class)| *class))
            .unwrap_or(self.general)
    }

    /// Every class that a flow may get.
    pub fn classes(&self) -> impl Iterator<Item = usize> + '_ {
        let by_port = self.ports.iter().map(|(_, class)| *class);
        let by_dscp = self.dscp.iter().map(|(_, class)| *class);
        core::iter::once(self.general).chain(by_port).chain(by_dscp)
    }

    /// Whether code points are looked at.
    pub fn needs_dscp(&self) -> bool {
        !self.dscp.is_empty()
    }
}

pub(super) const KEYS: &[&str] = &[
    "mode",
    "priority",
    "weight",
    "deliver",
    "deadline",
    "residual",
    "overhead",
    "fec_block",
    "fec_block_close",
    "window",
    "custody",
    "keep",
];

const CUSTODIES: [(&str, CustodyPlace); 3] = [
    ("none", CustodyPlace::None),
    ("memory", CustodyPlace::Memory),
    ("disk", CustodyPlace::Disk),
];

/// The mode in which flows without a named one are carried: everything arrives, and what is damaged is asked for.
const AUTO: Mode = Mode::HybridNackMack;

/// The octets by which a stream may run ahead of its destination: a geostationary round trip at 50 mbit.
const WINDOW: ByteCount = ByteCount(4 << 20);
const WINDOW_MIN: ByteCount = ByteCount(4 << 10);
const WINDOW_MAX: ByteCount = ByteCount(1 << 30);
/// A block must not wait long for a slow application.
const BLOCK_CLOSE: Duration = Duration::from_millis(20);

/// The class that exists without being in the file.
pub(super) fn built_in() -> ClassSettings {
    ClassSettings {
        name: DEFAULT_CLASS.to_owned(),
        is_auto: true,
        flow: FlowClass {
            mode: AUTO,
            window: WINDOW,
            ..FlowClass::default()
        },
        custody: CustodyPlace::None,
        keep: WINDOW,
    }
}

pub(super) fn read(
    name: &str,
    id: ClassId,
    reader: &TableReader<'_>,
    overhead: Option<u8>,
) -> Result<ClassSettings, SettingsError> {
    let modes = Mode::ALL.map(|mode| (mode.name(), Some(mode)));
    let modes: Vec<_> = [("auto", None)].into_iter().chain(modes).collect();
    let mode = reader.choice("mode", &modes)?.flatten();
    let is_auto = mode.is_none();
    let mode = mode.unwrap_or(AUTO);
    let rules = ModeRules::of(mode);
    let custody = reader.choice("custody", &CUSTODIES)?;
    let custody = match custody {
        None if rules.custody => CustodyPlace::Memory,
        None => CustodyPlace::None,
        Some(custody) if custody != CustodyPlace::None && !rules.custody => {
            let problem = format!(
                "mode {mode} leaves the octets with the client until the destination has them; \
                 write custody = \"none\", or mode = \"near-reliable\""
            );
            return Err(reader.wrong("custody", problem));
        }
        Some(custody) => custody,
    };
    let window = sized(reader, "window", WINDOW)?;
    // Custody exists to take octets that the link cannot carry now.
    let keep = sized(reader, "keep", window.max(ByteCount(16 << 20)))?;
    if keep < window {
        let problem = format!("is {keep}, less than the window of {window}; make it larger");
        return Err(reader.wrong("keep", problem));
    }
    let deadline = reader.duration("deadline")?;
    if deadline.is_some_and(|span| span.is_zero()) {
        return Err(reader.wrong("deadline", "must be above 0; write 100ms"));
    }
    let priority = reader.whole("priority", 0..=63)?.unwrap_or(0);
    let weight = reader.whole("weight", 1..=255)?.unwrap_or(1);
    let repair = super::thin::of_class(reader, (is_auto, deadline), overhead)?;
    let goal = repair.messages.and_then(|thin| thin.goal());
    let keeps_late = goal.is_some_and(|goal| goal.deliver == Deliver::All);
    let flow = FlowClass {
        mode,
        priority: Priority(u8::try_from(priority).unwrap_or(u8::MAX)),
        id,
        weight: u8::try_from(weight).unwrap_or(u8::MAX),
        deadline: deadline.filter(|_| !keeps_late),
        fec_words: FecStrength::NONE,
        block: block(reader, mode)?,
        thin: repair.streams,
        thin_messages: repair.messages,
        window,
        resume: custody != CustodyPlace::None,
        durable: custody == CustodyPlace::Disk,
    };
    Ok(ClassSettings {
        name: name.to_owned(),
        is_auto,
        flow,
        custody,
        keep,
    })
}

fn sized(
    reader: &TableReader<'_>,
    key: &'static str,
    default: ByteCount,
) -> Result<ByteCount, SettingsError> {
    let size = reader.value_or(key, default)?;
    if (WINDOW_MIN..=WINDOW_MAX).contains(&size) {
        Ok(size)
    } else {
        Err(reader.wrong(key, format!("is {size}; write 4KiB to 1GiB")))
    }
}

/// `fec_block = "20+4"`: 4 repair symbols for every 20 TPDUs.
fn block(reader: &TableReader<'_>, mode: Mode) -> Result<Option<BlockPlan>, SettingsError> {
    const FORM: &str = "write sources+repairs, such as 20+4, 256 together at most, or none";
    let close = reader.duration("fec_block_close")?.unwrap_or(BLOCK_CLOSE);
    let Some(text) = reader.text("fec_block")?.filter(|text| *text != "none") else {
        return Ok(None);
    };
    if !ModeRules::of(mode).blocks {
        let problem = format!("mode {mode} sends no parity across TPDUs; quasi-reliable does");
        return Err(reader.wrong("fec_block", problem));
    }
    let parsed = text.split_once('+').and_then(|(k, repairs)| {
        let k: NonZeroU8 = k.trim().parse().ok()?;
        BlockPlan::new(k, repairs.trim().parse().ok()?, close)
    });
    match parsed {
        Some(plan) => Ok(Some(plan)),
        None => Err(reader.wrong("fec_block", format!("`{text}` is not a block; {FORM}"))),
    }
}
