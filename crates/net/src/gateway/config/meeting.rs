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
    for key in ["rendezvous", "introduce", "relay_rate"] {
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
        if reader.has("introduce") {
            let problem = "is not used beside rendezvous: a hub reaches both ends itself, and what came through another hub goes no \
                           further; remove one of them";
            return Err(reader.wrong("introduce", problem));
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
    let is_udp = matches!(
        carrier,
        CarrierChoice::Auto | CarrierChoice::Udp | CarrierChoice::UdpNoChecksum
    );
    if introduce != Introduce::Nothing && !is_udp {
        let problem = format!(
            "is not used with carrier = \"{carrier}\": others could not call such an address by UDP; remove one of them"
        );
        return Err(reader.wrong("introduce", problem));
    }
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

#[cfg(test)]
mod tests {
    use crate::gateway::config::GatewayConfig;
    use crate::gateway::config::explain::explain;
    use crate::session::{Entropy, SecretKey};

    /// A file with a peer to be met and a hub, each with such lines.
    fn read(security: &str, met: &str, hub: &str) -> Result<GatewayConfig, String> {
        let keys = [1, 2].map(|seed| {
            let key = SecretKey::generate(&mut Entropy::from_seed([seed; 32])).public();
            if security.contains("noise") {
                format!("public_key = \"{key}\"")
            } else {
                String::new()
            }
        });
        let [one, other] = keys;
        let text = format!(
            "[gateway]\nname = \"a\"\n[security]\n{security}\n[egress]\nallow = [\"10.0.0.1:80\"]\n\
             [[peer]]\nname = \"ground\"\n{one}\n{met}\n[[peer]]\nname = \"hub\"\n{other}\n{hub}\n"
        );
        GatewayConfig::read("a.toml", &text).map_err(|error| error.to_string())
    }

    const NOISE: &str = "kind = \"noise\"\nprivate_key_file = \"a.key\"";
    const MET: &str = "rendezvous = \"hub\"";
    const HUB: &str = "address = \"192.0.2.1:4914\"";
    const NONE: &str = "kind = 'none'";
    const RELAY: &str = "introduce = 'relay'";

    /// The security, the lines of the one that is met and of the hub, the field that is wrong, and a part of the cure.
    const REFUSED: [[&str; 5]; 13] = [
        [NONE, MET, HUB, "rendezvous", "needs kind"],
        [NONE, RELAY, HUB, "introduce", "needs kind"],
        [
            NONE,
            "relay_rate = '1mbit'",
            HUB,
            "relay_rate",
            "needs kind",
        ],
        [
            NOISE,
            "rendezvous = 'hub'\nintroduce = 'relay'",
            HUB,
            "introduce",
            "remove one",
        ],
        [
            NOISE,
            "rendezvous = 'hub'\naddress = '192.0.2.2:1'",
            HUB,
            "address",
            "remove one",
        ],
        [
            NOISE,
            "rendezvous = 'hub'\ncarrier = 'udplite'",
            HUB,
            "carrier",
            "remove it",
        ],
        [
            NOISE,
            "introduce = 'address'\ncarrier = 'udplite'",
            HUB,
            "introduce",
            "remove one",
        ],
        [
            NOISE,
            "introduce = 'relay'\ncarrier = 'ethernet:lo'",
            HUB,
            "introduce",
            "remove one",
        ],
        [
            NOISE,
            "introduce = 'address'\nrelay_rate = '1mbit'",
            HUB,
            "relay_rate",
            "write that",
        ],
        [
            NOISE,
            "introduce = 'relay'\nrelay_rate = '1bit'",
            HUB,
            "relay_rate",
            "at least 1kbit/s",
        ],
        [
            NOISE,
            "rendezvous = 'hug'",
            HUB,
            "rendezvous",
            "no other [[peer]] named `hug`",
        ],
        [
            NOISE,
            "rendezvous = 'ground'",
            HUB,
            "rendezvous",
            "no other [[peer]] named `ground`",
        ],
        [
            NOISE,
            MET,
            "rendezvous = 'ground'",
            "rendezvous",
            "itself met through a hub",
        ],
    ];

    #[test]
    fn what_does_not_fit_a_meeting_is_refused_with_the_field_and_the_remedy() {
        assert!(read(NOISE, MET, HUB).is_ok());
        for [security, met, hub, field, why] in REFUSED {
            let error = read(security, met, hub).expect_err(met);
            assert!(error.starts_with("a.toml"), "{error}");
            assert!(error.contains(&format!(".{field}`")), "{met}: {error}");
            assert!(error.contains(why), "{met}: {error}");
        }
    }

    #[test]
    fn a_hub_without_an_address_is_told_of_since_it_has_to_call() {
        let explained = |hub| explain(&read(NOISE, MET, hub).expect("sound"));
        let said = "it has to call us";
        assert!(!explained(HUB).contains(said));
        assert!(explained("").contains(said), "{}", explained(""));
        for carrier in ["udp", "udp-nochecksum", "auto"] {
            let line = format!("introduce = \"relay\"\ncarrier = \"{carrier}\"");
            let read = read(NOISE, &line, HUB);
            assert!(read.is_ok(), "{carrier}: {read:?}");
        }
    }
}
