//! Changes that a reload takes up, and those that need a restart.

use super::carrier::CarrierChoice;
use super::class::{ClassRules, CustodyPlace};
use super::settings::{GatewayConfig, PeerSettings, ToldLinkSettings, TunnelSettings};

/// Whether a class keeps octets on disk, for which the store is opened at the start.
fn keeps_on_disk(config: &GatewayConfig) -> bool {
    let mut classes = config.classes.iter();
    classes.any(|class| class.custody == CustodyPlace::Disk)
}

/// The fields that differ and cannot change while the gateway runs, by their names in the file.
/// Empty if `new` can be taken up as it is.
pub fn fixed_differences(running: &GatewayConfig, new: &GatewayConfig) -> Vec<String> {
    let mut fixed = Vec::new();
    let mut check = |differs: bool, field: &str| {
        if differs {
            fixed.push(field.to_owned());
        }
    };
    check(running.name != new.name, "gateway.name");
    check(running.listen != new.listen, "gateway.listen");
    check(running.fec_words != new.fec_words, "gateway.fec_words");
    check(running.thin != new.thin, "gateway.overhead");
    check(running.state_dir != new.state_dir, "gateway.state_dir");
    check(!same_kind(running, new), "security.kind");
    check(running.custody != new.custody, "custody");
    check(
        keeps_on_disk(new) && !keeps_on_disk(running),
        "class (the first with custody = \"disk\")",
    );
    check(tunnels_differ(running, new), "tunnel");
    check(links_differ(running, new), "link");
    check(running.limits != new.limits, "limits");
    check(running.metrics != new.metrics, "metrics.listen");
    check(running.capture != new.capture, "capture");
    check(running.trace != new.trace, "trace");
    let sizes = |peer: &PeerSettings| (peer.mtu, peer.mtu_discovery);
    let others = |peer: &PeerSettings| {
        let mut same = running.live_peers().filter(|other| other.name == peer.name);
        same.any(|other| sizes(other) != sizes(peer))
    };
    check(new.peers.iter().any(others), "peer.mtu, peer.mtu_discovery");
    let needs_port = |peer: &PeerSettings| {
        let mut same = running.live_peers().filter(|other| other.name == peer.name);
        let carrier = same.next().map(|other| &other.carrier);
        *carrier.unwrap_or(&CarrierChoice::Udp) != peer.carrier
    };
    check(new.peers.iter().any(needs_port), "peer.carrier");
    let has_other_paths = |peer: &PeerSettings| {
        let mut same = running.live_peers().filter(|other| other.name == peer.name);
        same.next().map_or(&[][..], |other| &other.paths) != peer.paths
    };
    check(new.peers.iter().any(has_other_paths), "peer.path");
    fixed
}

/// Whether tunnels differ in more than the classes of their packets.
fn tunnels_differ(running: &GatewayConfig, new: &GatewayConfig) -> bool {
    let device = |config: &GatewayConfig, tunnel: &TunnelSettings| {
        let peer = config.peer_name(tunnel.peer).to_owned();
        let same = TunnelSettings {
            peer: 0,
            classes: ClassRules::default(),
            ..tunnel.clone()
        };
        (same, peer)
    };
    let was = running.tunnels.iter().map(|tunnel| device(running, tunnel));
    !was.eq(new.tunnels.iter().map(|tunnel| device(new, tunnel)))
}

/// Whether links differ: their peers by name, since places may.
fn links_differ(running: &GatewayConfig, new: &GatewayConfig) -> bool {
    let named = |config: &GatewayConfig, link: &ToldLinkSettings| {
        let peer = config.peer_name(link.peer).to_owned();
        let same = ToldLinkSettings {
            peer: 0,
            ..link.clone()
        };
        (same, peer)
    };
    let was = running.links.iter().map(|link| named(running, link));
    !was.eq(new.links.iter().map(|link| named(new, link)))
}

/// Whether peers are recognised by keys of the same kind.
fn same_kind(running: &GatewayConfig, new: &GatewayConfig) -> bool {
    running.security.name() == new.security.name()
}

/// The configuration `new`, but with the values of `running` for all that cannot change. Peers of `running` keep
/// their places, even those that are not in `new`; new peers come behind them.
pub fn merge(running: &GatewayConfig, new: GatewayConfig) -> GatewayConfig {
    let changes_peers = same_kind(running, &new);
    let (peers, places) = if changes_peers {
        merge_peers(&running.peers, &new.peers)
    } else {
        (running.peers.clone(), Vec::new())
    };
    // Entries refer to classes. A class whose store is not open could promise nothing.
    let has_store = keeps_on_disk(running) || !keeps_on_disk(&new);
    let is_there = |peer: usize| peers.get(peer).is_some_and(|peer| !peer.is_removed);
    let mut merged = GatewayConfig {
        egress: new.egress,
        log: new.log,
        ..running.clone()
    };
    if changes_peers && has_store {
        let place = |peer: &mut usize| *peer = places.get(*peer).copied().unwrap_or(usize::MAX);
        merged.forwards = new.forwards;
        merged.socks = new.socks;
        merged.far_peers = new.far_peers;
        merged.transparent = new.transparent;
        merged.classes = new.classes;
        for tunnel in &mut merged.tunnels {
            let mut others = new.tunnels.iter();
            let same = others.find(|other| other.device == tunnel.device);
            tunnel.classes = same.map_or_else(ClassRules::default, |same| same.classes.clone());
        }
        let forwards = merged.forwards.iter_mut().map(|e| &mut e.route);
        let socks = merged.socks.iter_mut().map(|e| &mut e.route);
        let transparent = merged.transparent.iter_mut().map(|e| &mut e.route);
        let far = merged.far_peers.iter_mut().map(|far| &mut far.route);
        let routes = forwards.chain(socks).chain(transparent).chain(far);
        routes.for_each(|route| place(&mut route.peer));
    }
    // Entries to a peer that is gone lead nowhere.
    merged.forwards.retain(|e| is_there(e.route.peer));
    merged.socks.retain(|e| is_there(e.route.peer));
    merged.transparent.retain(|e| is_there(e.route.peer));
    merged.far_peers.retain(|far| is_there(far.route.peer));
    if changes_peers {
        merged.security = new.security;
    }
    merged.peers = peers;
    merged
}

/// The peers by their places, and the place of each of `new`.
fn merge_peers(running: &[PeerSettings], new: &[PeerSettings]) -> (Vec<PeerSettings>, Vec<usize>) {
    let mut peers = running.to_vec();
    for peer in &mut peers {
        peer.is_removed = true;
        peer.address = None;
    }
    let mut places = Vec::new();
    for settings in new {
        let place = peers.iter().position(|peer| peer.name == settings.name);
        let place = place.unwrap_or(peers.len());
        match peers.get_mut(place) {
            // The size of packets is decided when a peer is added.
            Some(peer) if running.get(place).is_some_and(|was| !was.is_removed) => {
                *peer = PeerSettings {
                    mtu: peer.mtu,
                    mtu_discovery: peer.mtu_discovery,
                    carrier: peer.carrier.clone(),
                    paths: peer.paths.clone(),
                    ..settings.clone()
                };
            }
            // Ports of carriers are opened at the start.
            place => {
                let added = PeerSettings {
                    carrier: CarrierChoice::Udp,
                    paths: Vec::new(),
                    ..settings.clone()
                };
                match place {
                    Some(peer) => *peer = added,
                    None => peers.push(added),
                }
            }
        }
        places.push(place);
    }
    (peers, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                        rate = \"1mbit\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n";

    fn read(text: &str) -> GatewayConfig {
        GatewayConfig::read("a.toml", text).unwrap()
    }

    #[test]
    fn rates_and_permissions_change_and_names_are_told_to_need_a_restart() {
        let running = read(TEXT);
        let free = read(
            &TEXT
                .replace("1mbit", "2mbit")
                .replace(":80", ":81")
                .replace("\"a\"", "\"a\"\nlog = \"debug\""),
        );
        assert!(fixed_differences(&running, &free).is_empty());
        assert_eq!(merge(&running, free.clone()), free);
        let fixed = read(
            &TEXT
                .replace("\"a\"", "\"c\"")
                .replace("\"b\"", "\"b\"\nmtu = \"1400B\""),
        );
        let told = fixed_differences(&running, &fixed);
        assert_eq!(told, ["gateway.name", "peer.mtu, peer.mtu_discovery"]);
        assert_eq!(merge(&running, fixed), running);
    }

    #[test]
    fn a_rate_that_was_told_can_be_found_after_a_reload_and_the_other_way_round() {
        let told = read(TEXT);
        let found = read(&TEXT.replace("rate = \"1mbit\"", "share = \"background\""));
        for (running, new) in [(&told, &found), (&found, &told)] {
            assert!(fixed_differences(running, new).is_empty());
            assert_eq!(&merge(running, new.clone()), new);
        }
    }

    #[test]
    fn a_carrier_needs_a_restart_also_that_of_a_new_peer() {
        let running = read(TEXT);
        let other = read(&TEXT.replace("\"b\"", "\"b\"\ncarrier = \"udp-nochecksum\""));
        assert_eq!(fixed_differences(&running, &other), ["peer.carrier"]);
        assert_eq!(merge(&running, other), running);
        let new = "[[peer]]\nname = \"c\"\ncarrier = \"udplite\"\n[egress]";
        let added = read(&TEXT.replace("[egress]", new));
        assert_eq!(fixed_differences(&running, &added), ["peer.carrier"]);
        let merged = merge(&running, added);
        assert_eq!(merged.peers[1].carrier, CarrierChoice::Udp);
    }

    #[test]
    fn peers_keep_their_places_whatever_comes_and_goes() {
        let with = |names: &[&str], to: &str| {
            let peers = names.iter().fold(String::new(), |text, name| {
                text + &format!("[[peer]]\nname = \"{name}\"\nrate = \"1mbit\"\n")
            });
            read(&format!(
                "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n{peers}\
                 [[forward]]\nlisten = \"127.0.0.1:7\"\nto = \"10.0.0.1:7\"\npeer = \"{to}\"\n"
            ))
        };
        let names = |config: &GatewayConfig| {
            let name = |peer: &PeerSettings| (peer.name.clone(), peer.is_removed);
            config.peers.iter().map(name).collect::<Vec<_>>()
        };
        let known = |list: &[(&str, bool)]| {
            let owned = |(name, is_removed): &(&str, bool)| ((*name).to_owned(), *is_removed);
            list.iter().map(owned).collect::<Vec<_>>()
        };
        let running = with(&["b", "c"], "b");
        let new = with(&["d", "c"], "d");
        assert!(fixed_differences(&running, &new).is_empty());
        let merged = merge(&running, new);
        assert_eq!(
            names(&merged),
            known(&[("b", true), ("c", false), ("d", false)])
        );
        assert_eq!(merged.forwards[0].route.peer, 2, "the place of d");
        let again = merge(&merged, with(&["c", "b"], "b"));
        assert_eq!(
            names(&again),
            known(&[("b", false), ("c", false), ("d", true)])
        );
        assert_eq!(again.forwards[0].route.peer, 0, "b has its place again");
        // Reserves are for those that are there.
        assert_eq!(merged.live_places().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn another_kind_of_security_leaves_peers_and_entries_alone() {
        let running = read(TEXT);
        let new = read(&TEXT.replace(
            "kind = \"none\"",
            "kind = \"preset\"\npreset_key_file = \"k\"",
        ));
        assert_eq!(fixed_differences(&running, &new), ["security.kind"]);
        assert_eq!(merge(&running, new), running);
    }

    #[test]
    fn a_class_cannot_begin_to_keep_on_disk_without_a_restart() {
        let running = read(TEXT);
        let class = "[class.bulk]\nmode = \"near-reliable\"\ncustody = \"disk\"\n";
        let custody = "[custody]\ndirectory = \"/var/lib/fulmar\"\n";
        let new = read(&format!("{TEXT}{class}{custody}"));
        let told = fixed_differences(&running, &new);
        assert_eq!(
            told,
            ["custody", "class (the first with custody = \"disk\")"]
        );
        assert_eq!(merge(&running, new).classes, running.classes);
    }
}
