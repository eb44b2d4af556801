//! Peers in words: where they are, what they are sent, by which paths, and who tells of their links.

use super::quantities::span;
use crate::gateway::config::carrier::CarrierChoice;
use crate::gateway::config::settings::{GatewayConfig, LinkSource, MTU_MIN, PeerSettings};
use crate::session::Introduce;
use core::fmt::Write;
use fulmar_proto::rate::RateSharing;
use fulmar_proto::transport::aerotp::RateSource;

/// Where a peer is looked for, in words.
fn whereabouts(config: &GatewayConfig, peer: &PeerSettings) -> String {
    match &peer.address {
        Some(address) => format!("is called at {address}"),
        None if matches!(peer.carrier, CarrierChoice::Ethernet(_)) => {
            "is called on its device".to_owned()
        }
        None => match &peer.meeting.rendezvous {
            Some(hub) => {
                let calls_us = |peer: &PeerSettings| peer.name == *hub && peer.address.is_none();
                let who_calls = if config.peers.iter().any(calls_us) {
                    "; that has no address here, so it has to call us"
                } else {
                    ""
                };
                format!(
                    "is met through `{hub}`, which tells each of the two where the other calls from, or carries their sealed \
                     datagrams{who_calls}"
                )
            }
            None => "calls us, from any address".to_owned(),
        },
    }
}

/// The help that a peer has to meet others.
fn introduced(peer: &PeerSettings, out: &mut String) -> core::fmt::Result {
    match peer.meeting.introduce {
        Introduce::Nothing => Ok(()),
        Introduce::Address => writeln!(
            out,
            "peer `{}` is told the addresses of others that are introduced, and they its own, if both ask",
            peer.name
        ),
        Introduce::Relay(rate) => writeln!(
            out,
            "peer `{}` is told the addresses of others that are introduced, and they its own, if both ask; what it sends to them \
             through this gateway is carried on at up to {rate}, and so is what all of them send to it",
            peer.name
        ),
    }
}

pub(super) fn peers(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    for peer in &config.peers {
        let place = whereabouts(config, peer);
        let keys = match peer.public_keys().count() {
            2 => ", under either of its two keys",
            _ => "",
        };
        writeln!(
            out,
            "peer `{}` {place}{keys}; it is sent {}, in packets of {}{}",
            peer.name,
            rate(peer.rate),
            packets(peer),
            carrier(config, peer)
        )?;
        introduced(peer, out)?;
        for path in &peer.paths {
            let most = path.rate.map_or_else(
                || "what that path is found to carry".to_owned(),
                |rate| format!("at most {rate}"),
            );
            let way = path.in_words();
            if path.cost == 0 {
                writeln!(
                    out,
                    "peer `{}` is sent its data {way} as well, {most}",
                    peer.name
                )?;
            } else {
                writeln!(
                    out,
                    "peer `{}` is sent its data {way} only while no path that costs less is up, {most}",
                    peer.name
                )?;
            }
        }
    }
    for link in &config.links {
        let path = match link.path {
            0 => "the path to its address".to_owned(),
            number => format!("its further path {number}"),
        };
        let holds = match link.source {
            LinkSource::Socket(_) => format!(
                "; a message holds for {} unless it says how long",
                span(link.valid_for)
            ),
            LinkSource::Schedule(_) | LinkSource::Dlep { .. } | LinkSource::Device { .. } => {
                String::new()
            }
        };
        writeln!(
            out,
            "link `{}`, below {path} to peer `{}`, is told of by {}{holds}",
            link.name,
            config.peer_name(link.peer),
            link.source.in_words(),
        )?;
    }
    for far in &config.far_peers {
        let route = &far.route;
        let between = &route.beyond[..route.beyond.len().saturating_sub(1)];
        let first = config.peer_name(route.peer);
        let between = between.iter().fold(format!("`{first}`"), |text, name| {
            format!("{text} and `{name}`")
        });
        writeln!(
            out,
            "peer `{}` is reached through {between}, which carry on what is for it",
            far.name
        )?;
    }
    Ok(())
}

fn carrier(config: &GatewayConfig, peer: &PeerSettings) -> String {
    let by = match &peer.carrier {
        CarrierChoice::Udp => return String::new(),
        CarrierChoice::Auto => {
            "by UDP, without checksum while damaged datagrams are worth mending".to_owned()
        }
        CarrierChoice::UdpNoChecksum => "by UDP without checksum".to_owned(),
        CarrierChoice::UdpLite => "by UDP-Lite".to_owned(),
        CarrierChoice::Ethernet(device) => format!("in Ethernet frames on {device}"),
    };
    let words = match config.fec_words.words() {
        0 => "as much parity as the peer's word on damage asks for".to_owned(),
        words => format!("{words} words of parity behind each datagram"),
    };
    format!(", {by}: what arrives damaged is mended by {words}")
}

fn rate(source: RateSource) -> String {
    let whose = match source.sharing() {
        RateSharing::Own => "taking the link for its own",
        RateSharing::Fair => "sharing it fairly with whoever else sends there",
        RateSharing::Background => "making way for whoever else sends there",
    };
    match source {
        RateSource::Told(rate) => format!("at most {rate}"),
        RateSource::Found { bound: None, .. } => {
            format!("what the link is found to carry, {whose}")
        }
        RateSource::Found {
            bound: Some(rate), ..
        } => format!("what the link is found to carry, at most {rate}, {whose}"),
    }
}

fn packets(peer: &PeerSettings) -> String {
    if peer.mtu_discovery && peer.mtu > MTU_MIN {
        format!(
            "{MTU_MIN} at first and then as large as the path is found to carry, up to {}",
            peer.mtu
        )
    } else {
        format!(
            "at most {}, which the path is taken to carry: with less, nothing passes",
            peer.mtu
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::explain::explain;

    #[test]
    fn what_is_sent_and_whose_the_link_is_is_said() {
        let said = |lines: &str| {
            let text = format!(
                "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n{lines}\
                 [egress]\nallow = [\"10.0.0.1:80\"]\n"
            );
            explain(&GatewayConfig::read("a.toml", &text).expect("it is sound"))
        };
        for (lines, words) in [
            (
                "rate = \"5mbit\"\n",
                "it is sent at most 5Mbit/s, in packets",
            ),
            ("", "what the link is found to carry, sharing it fairly"),
            (
                "share = \"own\"\n",
                "found to carry, taking the link for its own",
            ),
            (
                "rate = \"5mbit\"\nshare = \"background\"\n",
                "found to carry, at most 5Mbit/s, making way for",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\n",
                "sent its data by wwan0 as well, what",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\ncost = 1\n",
                "sent its data by wwan0 at cost 1 only while no path that costs less is up, what",
            ),
        ] {
            let told = said(lines);
            assert!(told.contains(words), "{words} in {told}");
        }
    }
}
