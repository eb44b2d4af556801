//! `rendezvous` and `introduce` of `[[peer]]`: peers that meet through a hub, and the hub that introduces them.

use super::carrier::CarrierChoice;
use super::settings::{MeetingSettings, PeerSettings, SecurityKind};
use crate::session::Introduce;
use fulmar_proto::units::Bitrate;
use fulmar_settings::{SettingsError, TableReader, suggestion};

type Read<T> = Result<T, SettingsError>;

/// The usual rate at which a hub carries on what one peer sends to another.
const RELAY_RATE: Bitrate = Bitrate::from_bits_per_second(20_000_000);

/// The ways in which a peer may be introduced.
const HELPS: [(&str, Introduce); 2] = [
    ("address", Introduce::Address),
    ("relay", Introduce::Relay(RELAY_RATE)),
];

/// Reads the keys of one `[[peer]]`.
pub(super) fn read(
    reader: &TableReader<'_>,
    security: &SecurityKind,
    carrier: &CarrierChoice,
) -> Read<MeetingSettings> {
    let is_noise = matches!(security, SecurityKind::Noise { .. });
    for key in ["rendezvous", "introduce"] {
        if reader.has(key) && !is_noise {
            let problem = "needs kind = \"noise\" in [security]: gateways are introduced by their public keys";
            return Err(reader.wrong(key, problem));
        }
    }
    let rendezvous = reader.text("rendezvous")?.map(str::to_owned);
    if rendezvous.is_some() {
        if *carrier != CarrierChoice::Udp {
            let problem =
                "is not used beside rendezvous, since the hub tells addresses of UDP; remove it";
            return Err(reader.wrong("carrier", problem));
        }
        for key in ["address", "path"] {
            if reader.has(key) {
                let problem =
                    "is not used beside rendezvous, by which the peer is found; remove one of them";
                return Err(reader.wrong(key, problem));
            }
        }
    }
    let mut introduce = reader.choice("introduce", &HELPS)?.unwrap_or_default();
    if let Some(rate) = reader.value::<Bitrate>("relay_rate")? {
        let Introduce::Relay(usual) = &mut introduce else {
            let problem = "is used beside introduce = \"relay\" alone; write that, or remove it";
            return Err(reader.wrong("relay_rate", problem));
        };
        if rate.as_bits_per_second() < 1_000 {
            let problem = format!("is {rate}; write at least 1kbit/s");
            return Err(reader.wrong("relay_rate", problem));
        }
        *usual = rate;
    }
    Ok(MeetingSettings {
        rendezvous,
        introduce,
    })
}

/// Refuses a hub that is no other peer, or that is itself met through a hub.
pub(super) fn check(tables: &[TableReader<'_>], peers: &[PeerSettings]) -> Read<()> {
    for (reader, peer) in tables.iter().zip(peers) {
        let Some(name) = &peer.meeting.rendezvous else {
            continue;
        };
        let hub = peers.iter().find(|hub| hub.name == *name);
        let Some(hub) = hub.filter(|hub| hub.name != peer.name) else {
            let others = peers.iter().filter(|other| other.name != peer.name);
            let names = others.map(|other| other.name.as_str());
            let problem = format!(
                "there is no other [[peer]] named `{name}`; {}",
                suggestion(name, names)
            );
            return Err(reader.wrong("rendezvous", problem));
        };
        if hub.meeting.rendezvous.is_some() {
            let problem = format!(
                "names `{name}`, which is itself met through a hub; name a peer with an address"
            );
            return Err(reader.wrong("rendezvous", problem));
        }
    }
    Ok(())
}
