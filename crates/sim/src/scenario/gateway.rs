//! The keys of `[flow]` that belong to a pair of gateways.

use super::SettingsError;
use super::aerotp::{AerotpPlan, Carrier};
use fulmar_proto::splice::{FlowClass, SplicerConfig};
use fulmar_proto::units::{Bitrate, ByteCount};
use fulmar_settings::TableReader;

/// One TCP connection, carried from one gateway to another.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    /// AeroTP's settings between the gateways.
    pub aerotp: AerotpPlan,
    /// The most octets that a gateway accepts beyond what the other gateway's host has received.
    pub credit: ByteCount,
    /// The rate at which the receiving application reads; as fast as octets come if not given.
    pub read_rate: Option<Bitrate>,
}

/// The keys read here.
pub(super) const KEYS: [&str; 2] = ["credit", "read_rate"];

/// The values of the gateways' own keys, `credit` and `read_rate`, whichever transport the flow has.
pub(super) fn values(
    reader: &TableReader<'_>,
) -> Result<(ByteCount, Option<Bitrate>), SettingsError> {
    let credit = reader.value_or("credit", FlowClass::default().window)?;
    if !(1..=u64::from(u32::MAX)).contains(&credit.0) {
        return Err(reader.wrong("credit", "must be 1B to 4294967295B"));
    }
    let read_rate: Option<Bitrate> = reader.value("read_rate")?;
    if read_rate == Some(Bitrate::ZERO) {
        return Err(reader.wrong("read_rate", "must be at least 1bit"));
    }
    Ok((credit, read_rate))
}

impl GatewayPlan {
    pub(super) fn read(reader: &TableReader<'_>, mtu: ByteCount) -> Result<Self, SettingsError> {
        let aerotp = AerotpPlan::read(reader, mtu, Carrier::Gateway)?;
        if !aerotp.rules().complete {
            let problem = "must be one that delivers everything: a gateway carries a stream";
            return Err(reader.wrong("mode", problem));
        }
        let (credit, read_rate) = values(reader)?;
        Ok(Self {
            aerotp,
            credit,
            read_rate,
        })
    }

    /// The class that the flow has between the gateways.
    pub fn class(&self) -> FlowClass {
        let connection = &self.aerotp.connection;
        FlowClass {
            mode: connection.mode,
            priority: connection.priority,
            fec_words: connection.fec_words,
            block: connection.block,
            thin: connection.thin,
            window: self.credit,
            ..FlowClass::default()
        }
    }

    /// A gateway's settings; the first flow at a node decides.
    pub fn splicer(&self) -> SplicerConfig {
        SplicerConfig {
            connection: self.aerotp.connection,
            ..SplicerConfig::default()
        }
    }
}
