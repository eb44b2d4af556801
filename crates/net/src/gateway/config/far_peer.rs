//! `[[peer]]` with `via`: gateways that are reached through others.

use super::settings::{FarPeer, GatewayRoute, PEER_NAME_BYTES_MAX, PeerSettings};
use fulmar_proto::splice::{Beyond, Host, HostName};
use fulmar_settings::{SettingsError, TableReader, suggestion};
use std::net::Ipv4Addr;

type Read<T> = Result<T, SettingsError>;

/// The keys of such a peer: all others are of a session, which it has with another.
const KEYS: [&str; 2] = ["name", "via"];

/// A peer and the name of the gateway before it, not followed yet.
struct Named<'a> {
    reader: &'a TableReader<'a>,
    name: HostName,
    via: String,
}

fn read<'a>(reader: &'a TableReader<'a>, all: &[&'static str]) -> Read<Named<'a>> {
    let mut others = all.iter().filter(|key| !KEYS.contains(*key));
    if let Some(key) = others.find(|key| reader.has(key)) {
        let problem =
            "is not used beside via, since the gateway that it names has the session; remove it";
        return Err(reader.wrong(key, problem));
    }
    let name: String = reader.required("name", "\"far\"")?;
    let problem =
        "must be as the gateway before it calls that peer, in letters, digits, `-`, `_` and `.`";
    let parsed = name.parse::<HostName>().ok();
    let parsed = parsed.filter(|name| name.as_str().len() <= PEER_NAME_BYTES_MAX);
    Ok(Named {
        name: parsed.ok_or_else(|| reader.wrong("name", problem))?,
        via: reader.required("via", "\"relay\"")?,
        reader,
    })
}

/// Reads the peers of `tables`, which all have `via`; `all` are the keys that a peer may have.
pub(super) fn read_all(
    tables: &[TableReader<'_>],
    all: &[&'static str],
    peers: &[PeerSettings],
) -> Read<Vec<FarPeer>> {
    let named: Vec<Named<'_>> = tables
        .iter()
        .map(|reader| read(reader, all))
        .collect::<Read<_>>()?;
    for (place, far) in named.iter().enumerate() {
        let name = far.name.as_str();
        let is_near = peers.iter().any(|peer| peer.name == name);
        if is_near
            || named[..place]
                .iter()
                .any(|other| other.name.as_str() == name)
        {
            let problem = format!("`{name}` is another peer's; give each its own");
            return Err(far.reader.wrong("name", problem));
        }
    }
    named.iter().map(|far| follow(far, &named, peers)).collect()
}

/// The peer with the whole way to it.
fn follow(far: &Named<'_>, named: &[Named<'_>], peers: &[PeerSettings]) -> Read<FarPeer> {
    let mut beyond = vec![far.name.clone()];
    let mut before = far;
    let peer = loop {
        if let Some(peer) = peers.iter().position(|peer| peer.name == before.via) {
            break peer;
        }
        let Some(next) = named.iter().find(|other| other.name.as_str() == before.via) else {
            let near = peers.iter().map(|peer| peer.name.as_str());
            let known = near.chain(named.iter().map(|other| other.name.as_str()));
            let problem = format!(
                "there is no [[peer]] named `{}`; {}",
                before.via,
                suggestion(&before.via, known)
            );
            return Err(before.reader.wrong("via", problem));
        };
        if beyond.contains(&next.name) {
            let problem = format!(
                "leads in a circle over `{}`; name a peer with an address or a key at the end",
                next.name
            );
            return Err(far.reader.wrong("via", problem));
        }
        beyond.insert(0, next.name.clone());
        before = next;
    };
    // Whether a way is short enough shows here rather than at the first flow.
    let end = Host::Address(Ipv4Addr::LOCALHOST.into());
    Beyond::new(beyond.clone(), end).map_err(|error| far.reader.wrong("via", error))?;
    Ok(FarPeer {
        name: far.name.to_string(),
        route: GatewayRoute { peer, beyond },
    })
}
