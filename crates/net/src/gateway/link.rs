//! The link's settings that follow from a configuration: addresses, sizes and keys of the peers.

use super::Link;
use super::config::{GatewayConfig, Keys, PeerSettings, read_keys};
use super::error::GatewayError;
use super::peers::{index_of, usable};
use crate::session::{
    Entropy, KeyQuestion, MtuConfig, PeerConfig, PeerIndex, PublicKey, SESSION_OVERHEAD, Security,
    SessionConfig, arrival_maps, damaged, fast_cipher, parity_follows, path_acks, rendezvous,
    reports, several_paths, unchecked, window_repair, wire_2,
};
use fulmar_proto::machine::{PathId, PathSizes};
use fulmar_proto::splice::Host;
use fulmar_proto::units::{ByteCount, FecStrength};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// IPv6 and UDP headers.
const V6_OVERHEAD: ByteCount = ByteCount(48);

pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> GatewayError {
    move |source| GatewayError::System { what, source }
}

/// A peer's address in the form of the carrier's socket. Waits for the answer, if the peer has a name.
pub(crate) fn peer_address(
    config: &GatewayConfig,
    peer: usize,
) -> Result<Option<SocketAddr>, GatewayError> {
    let Some(peer) = config.peers.get(peer) else {
        return Ok(None);
    };
    let Some(address) = &peer.address else {
        return Ok(None);
    };
    let wrong = |source| GatewayError::PeerAddress {
        peer: peer.name.clone(),
        address: address.to_string(),
        source,
    };
    let found = address.to_string().to_socket_addrs().map_err(wrong)?;
    let address = usable(found, config.listen.is_ipv6());
    address.map(Some).map_err(wrong)
}

/// The address of a peer that has no name to be resolved; peers with names get theirs once they are resolved.
pub(super) fn known_address(
    config: &GatewayConfig,
    peer: usize,
) -> Result<Option<SocketAddr>, GatewayError> {
    let settings = config.peers.get(peer);
    let address = settings.and_then(|peer| peer.address.as_ref());
    let is_known = address.is_some_and(|address| matches!(address.host, Host::Address(_)));
    if is_known {
        peer_address(config, peer)
    } else {
        Ok(None)
    }
}

/// A question to the peer at place `index` whether its keys and ours fit; `None` if none can be made.
///
/// # Errors
/// [`GatewayError`] for a key that cannot be read, or a system without entropy.
pub(crate) fn key_question(
    config: &GatewayConfig,
    index: usize,
) -> Result<Option<KeyQuestion>, GatewayError> {
    let keys = read_keys(config)?;
    let mut entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let question = config.peers.get(index).and_then(|peer| {
        let (security, _) = security_of(&keys, index, peer);
        KeyQuestion::new(&security, keys.identity.as_ref(), &mut entropy)
    });
    Ok(question)
}

/// The sizes of packets to a peer.
pub(super) fn mtu_config(peer: &PeerSettings) -> MtuConfig {
    if peer.mtu_discovery {
        MtuConfig {
            max: peer.mtu,
            rate: peer.rate.bound(),
            ..MtuConfig::default()
        }
    } else {
        MtuConfig::fixed(peer.mtu)
    }
}

/// The sizes that fit every peer's packets before anything is known of the paths; the session tells better ones.
pub(super) fn first_sizes(config: &GatewayConfig) -> PathSizes {
    let packets = config.peers.iter().map(|peer| mtu_config(peer).start);
    let packet = packets.min().unwrap_or(MtuConfig::default().start);
    let words = config
        .peers
        .iter()
        .map(|peer| config.first_parity(peer))
        .max();
    let parity = ByteCount::from_usize(words.unwrap_or(FecStrength::NONE).parity_bytes());
    let lower_overhead = V6_OVERHEAD + SESSION_OVERHEAD + parity;
    PathSizes {
        tpdu_bytes_max: packet.saturating_sub(lower_overhead).as_usize(),
        lower_overhead,
    }
}

/// The inner paths of the peers, by which their connections are known.
pub(super) fn inner_paths(config: &GatewayConfig) -> impl Iterator<Item = PathId> {
    let places = config.live_places();
    places.map(|place| PeerIndex(u32::try_from(place).unwrap_or(u32::MAX)).inner_path())
}

/// A peer's way of being recognised: by one key, and perhaps by another public one.
pub(super) type Recognition = (Security, Option<PublicKey>);

/// The way in which the peer at this place in the file is recognised.
pub(super) fn security_of(keys: &Keys, place: usize, peer: &PeerSettings) -> Recognition {
    let mut public = peer.public_keys().filter_map(|key| key.parse().ok());
    let security = match (&keys.preset, public.next()) {
        (preset, Some(key)) => Security::Noise {
            peer: key,
            preset: preset.clone(),
        },
        (Some(key), None) => Security::Preset { key: key.clone() },
        (None, None) => Security::None {
            label: u32::try_from(place).unwrap_or(u32::MAX),
        },
    };
    (security, public.next())
}

/// Tells the session of the meetings of the peer at this place: the hub that introduces it, and our help for it.
pub(super) fn set_meetings(config: &GatewayConfig, link: &mut Link, place: usize) {
    let Some(peer) = config.peers.get(place) else {
        return;
    };
    let hub = config.hub_of(place).map(index_of);
    link.meet(index_of(place), hub);
    link.introduce(index_of(place), peer.meeting.introduce);
}

/// The session's settings, with the paths where its peers may be found.
pub(super) fn session_settings(
    config: &GatewayConfig,
    keys: &Keys,
    endpoints: Vec<Vec<PathId>>,
    epoch: u64,
) -> SessionConfig {
    let mut endpoints = endpoints.into_iter();
    let peers = config
        .peers
        .iter()
        .enumerate()
        .map(|(index, peer)| PeerConfig {
            name: peer.name.clone(),
            security: security_of(keys, index, peer).0,
            endpoints: endpoints.next().unwrap_or_default(),
            mtu: mtu_config(peer),
        });
    let peers = peers.collect();
    SessionConfig {
        fec_words: config.fec_words,
        capabilities: fast_cipher()
            .into_iter()
            .chain([
                reports(),
                wire_2(),
                path_acks(),
                window_repair(),
                several_paths(),
                rendezvous(),
                arrival_maps(),
            ])
            .chain(config.lets_damage_in().then(unchecked))
            .chain(config.lets_damage_in().then(damaged))
            .chain(config.lets_damage_in().then(parity_follows))
            .collect(),
        ..SessionConfig::new(keys.identity.clone(), peers, epoch)
    }
}
