//! A receiver's report, as a file that somebody carries back to the sender.
//!
//! One JSON object, with a proof under the preset key at its end: what was altered on the way, or made without the key, is refused.

use super::layout::FileLayout;
use super::promise::units_to_send;
use super::schedule::{BlockSends, units_used};
use super::wire::{Announcement, ONE_WAY_OVERHEAD};
use crate::session::{PresetKey, derive_key, keyed_hash};
use crate::transfer::{UnsafeName, check_name};
use fulmar_proto::units::Probability;
use serde::{Deserialize, Serialize};

/// The end of a report's name, behind the name of its file.
pub const REPORT_SUFFIX: &str = ".fulmar-report";

const SCHEMA: &str = "fulmar.one-way-report/1";
/// The longest name that file systems have.
const FILE_NAME_BYTES_MAX: usize = 255;
const PROOF_CONTEXT: &str = "fulmar 2026-11-27 one-way report";

/// Why a file of some name cannot be sent over a link without a way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OneWayNameError {
    /// No file of that name is ever made.
    #[error(transparent)]
    Unsafe(#[from] UnsafeName),
    /// There is no room for the end of its report's name.
    #[error("it is longer than {max} octets, and its report has a longer name", max = FILE_NAME_BYTES_MAX - REPORT_SUFFIX.len())]
    Long,
    /// It is the name of a report.
    #[error("it is the name of a report, or of a file beside one")]
    Report,
}

/// Checks that a file of this name can be sent over a link without a way back: there is a place for it, and for its report.
///
/// # Errors
/// The rule that the name breaks.
pub fn check_one_way_name(name: &str) -> Result<(), OneWayNameError> {
    check_name(name)?;
    if name.len() + REPORT_SUFFIX.len() > FILE_NAME_BYTES_MAX {
        Err(OneWayNameError::Long)
    } else if name.contains(REPORT_SUFFIX) {
        Err(OneWayNameError::Report)
    } else {
        Ok(())
    }
}

/// A block that needs more units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockReport {
    /// Its number.
    pub block: u16,
    /// Its sources.
    pub sources: u16,
    /// The units that it needs, any that it does not have.
    pub missing: u32,
    /// One past the highest unit that was heard.
    pub next: u32,
}

/// The state of a file at one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneWayReport {
    schema: String,
    /// The file's name.
    pub name: String,
    /// Its octets.
    pub size_bytes: u64,
    /// Its BLAKE3 digest, in hexadecimal digits.
    pub digest: String,
    /// Octets of its symbols.
    pub symbol_bytes: u16,
    /// The loss up to which the sender promised the file; 0 if it promised nothing.
    pub promised_loss: f64,
    /// The probability to miss the file that it promised at that loss.
    pub promised_residual: f64,
    /// The symbols of one round of the sender.
    pub promised_symbols: u64,
    /// Datagrams that came from the file's senders.
    pub datagrams: u64,
    /// Datagrams of theirs that did not come, by the gaps in their counters.
    pub datagrams_lost: u64,
    /// The share of those.
    pub loss: f64,
    /// Whether the receiver has the whole file.
    pub is_whole: bool,
    /// The symbols that are missing, over all blocks.
    pub missing_symbols: u64,
    /// The blocks that need more.
    pub blocks: Vec<BlockReport>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

/// The reason why a report is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OneWayReportError {
    /// It is no report, or one of another release.
    #[error("it is no report of a one-way receiver: {0}")]
    Form(String),
    /// It was changed, or its receiver had another key.
    #[error("its proof does not fit: it was changed, or its receiver has another key")]
    Proof,
    /// It tells of another file, or of another division into symbols.
    #[error("it tells of another file ({0})")]
    OtherFile(String),
    /// So much is missing that no block has the units for it.
    #[error("the units of block {0} do not suffice for this loss and residual")]
    TooMuch(u16),
}

impl OneWayReport {
    pub(super) fn new(
        announcement: &Announcement,
        (came, lost): (u64, u64),
        blocks: Vec<BlockReport>,
    ) -> Self {
        let missing = blocks.iter().map(|block| u64::from(block.missing)).sum();
        Self {
            schema: SCHEMA.to_owned(),
            name: announcement.name.clone(),
            size_bytes: announcement.size,
            digest: blake3::Hash::from_bytes(announcement.digest).to_string(),
            symbol_bytes: announcement.symbol_bytes,
            promised_loss: announcement.promise.loss.value(),
            promised_residual: announcement.promise.residual.value(),
            promised_symbols: announcement.promise.units,
            datagrams: came,
            datagrams_lost: lost,
            loss: if came + lost == 0 {
                0.0
            } else {
                lost as f64 / (came + lost) as f64
            },
            is_whole: missing == 0,
            missing_symbols: missing,
            blocks,
            proof: String::new(),
        }
    }

    fn proof(&self, preset: &PresetKey) -> Result<String, OneWayReportError> {
        let unproved = Self {
            proof: String::new(),
            ..self.clone()
        };
        let text = serde_json::to_string(&unproved)
            .map_err(|error| OneWayReportError::Form(error.to_string()))?;
        let key = derive_key(PROOF_CONTEXT, preset.octets());
        Ok(blake3::Hash::from_bytes(keyed_hash(&key, text.as_bytes())).to_string())
    }

    /// The report as text, proved under the key.
    ///
    /// # Errors
    /// It has no form as JSON, which no report lacks.
    pub fn to_text(&self, preset: &PresetKey) -> Result<String, OneWayReportError> {
        let proved = Self {
            proof: self.proof(preset)?,
            ..self.clone()
        };
        let text = serde_json::to_string_pretty(&proved);
        let text = text.map_err(|error| OneWayReportError::Form(error.to_string()))?;
        Ok(text + "\n")
    }

    /// The report in `text`.
    ///
    /// # Errors
    /// [`OneWayReportError`]: it is none, or was not made under this key.
    pub fn from_text(text: &str, preset: &PresetKey) -> Result<Self, OneWayReportError> {
        let form = |error: &dyn core::fmt::Display| OneWayReportError::Form(error.to_string());
        let report: Self = serde_json::from_str(text).map_err(|error| form(&error))?;
        if report.schema != SCHEMA {
            return Err(form(&format!("its schema is {}", report.schema)));
        }
        // Comparing hashes takes the same time for all.
        let told = blake3::Hash::from_hex(&report.proof).map_err(|_| OneWayReportError::Proof)?;
        let ours =
            blake3::Hash::from_hex(report.proof(preset)?).map_err(|_| OneWayReportError::Proof)?;
        if told != ours {
            return Err(OneWayReportError::Proof);
        }
        Ok(report)
    }

    /// Whether it tells of this file.
    pub fn is_about(&self, announcement: &Announcement) -> bool {
        self.name == announcement.name
            && self.size_bytes == announcement.size
            && self.symbol_bytes == announcement.symbol_bytes
            && self.digest == blake3::Hash::from_bytes(announcement.digest).to_string()
    }
}

/// The units that mend what several receivers miss: for each block as many as the one that misses most needs, none of which
/// anybody has heard. Where the units are used up, all of them are sent once: some were heard, and `residual` is not promised.
///
/// # Errors
/// [`OneWayReportError`]: a report is of another file, or misses more than can be sent.
pub fn sends_for_reports(
    announcement: &Announcement,
    layout: &FileLayout,
    reports: &[OneWayReport],
    (loss, residual): (Probability, Probability),
) -> Result<Vec<BlockSends>, OneWayReportError> {
    if let Some(other) = reports.iter().find(|report| !report.is_about(announcement)) {
        return Err(OneWayReportError::OtherFile(other.name.clone()));
    }
    let short = layout.numbers().filter(|&number| {
        reports
            .iter()
            .any(|report| report.blocks.iter().any(|block| block.block == number))
    });
    let blocks = short.count().max(1);
    let residual = Probability::new(residual.value() / blocks as f64).unwrap_or(residual);
    let sends = layout.numbers().map(|number| {
        let told = reports
            .iter()
            .flat_map(|report| &report.blocks)
            .filter(|block| block.block == number);
        let (missing, first) = told.fold((0, 0), |(missing, next), block| {
            (block.missing.max(missing), block.next.max(next))
        });
        let used = units_used(layout, number);
        let units = units_to_send(missing, loss, residual, used)
            .ok_or(OneWayReportError::TooMuch(number))?;
        Ok(if units > 0 && first.saturating_add(units) > used {
            BlockSends {
                first: 0,
                units: used,
            }
        } else {
            BlockSends {
                first: first % used,
                units,
            }
        })
    });
    sends.collect()
}

/// The octets of a symbol whose datagram has at most `datagram_bytes`.
pub fn symbol_bytes_in(datagram_bytes: usize) -> u16 {
    let room = datagram_bytes.saturating_sub(ONE_WAY_OVERHEAD) & !1;
    u16::try_from(room).unwrap_or(u16::MAX - 1)
}
