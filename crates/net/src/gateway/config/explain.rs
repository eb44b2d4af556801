//! A configuration said back in words, so that a slip shows before traffic does.

use super::carrier::CarrierChoice;
use super::class::{ClassRules, ClassSettings, CustodyPlace};
use super::own_entries;
use super::settings::{
    EntryProtocol, GatewayConfig, GatewayRoute, LinkSource, MTU_MIN, PeerSettings, SecurityKind,
};
use crate::custody::SyncPolicy;
use crate::gateway::config::state_place;
use crate::session::Introduce;
use core::fmt::Write;
use fulmar_proto::rate::RateSharing;
use fulmar_proto::repair::DeliveryGoal;
use fulmar_proto::splice::{FlowClass, HostName};
use fulmar_proto::transport::aerotp::{ModeRules, RateSource};
use fulmar_proto::units::{ByteCount, Duration, format_duration};
use fulmar_proto::wire::Mode;
use std::path::PathBuf;

/// The whole configuration, a line for each thing it does.
pub fn explain(config: &GatewayConfig) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_all(config, &mut text);
    text
}

fn write_all(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    writeln!(
        out,
        "gateway `{}` sends to its peers, and hears them, at UDP address {}",
        config.name, config.listen
    )?;
    security(config, out)?;
    peers(config, out)?;
    for class in &config.classes {
        writeln!(
            out,
            "class `{}`: {}",
            class.name,
            describe_class(class, &config.peers)
        )?;
    }
    entries(config, out)?;
    egress(config, out)?;
    limits(config, out)
}

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

fn peers(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
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

fn egress(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    if config.egress.allow.is_empty() {
        writeln!(
            out,
            "clients of the peers may connect to nothing from here ([egress] allows nothing)"
        )?;
    } else {
        let allowed: Vec<String> = config
            .egress
            .allow
            .iter()
            .map(|allow| in_words(&allow.to_string()))
            .collect();
        writeln!(
            out,
            "clients of the peers may connect from here to {}; a destination must answer within {}",
            allowed.join(", "),
            span(config.egress.connect_timeout)
        )?;
    }
    if !config.egress.relay.is_empty() {
        let names = config.egress.relay.join("`, `");
        writeln!(out, "flows of one peer are carried on to `{names}`")?;
    }
    for (address, what) in own_entries::permitted(config) {
        writeln!(
            out,
            "careful: `allow` permits {address}, where this gateway itself listens ({what}): what comes out of it there goes in again, \
             to a peer, and may go round; leave that address out of [egress] unless you mean it"
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

fn security(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    match &config.security {
        SecurityKind::Noise {
            private_key_file,
            former_private_key_file,
            preset_key_file,
        } => {
            let former = match former_private_key_file {
                Some(file) => format!(
                    ", the one before, which is still taken, in {}",
                    file.display()
                ),
                None => String::new(),
            };
            let preset = match preset_key_file {
                Some(file) => format!(" and the preset key in {}", file.display()),
                None => String::new(),
            };
            writeln!(
                out,
                "datagrams are encrypted; our key is in {}{former}{preset}",
                private_key_file.display()
            )
        }
        SecurityKind::Preset { preset_key_file } => writeln!(
            out,
            "datagrams are encrypted under the preset key in {}",
            preset_key_file.display()
        ),
        SecurityKind::None => writeln!(
            out,
            "NOTHING IS PROTECTED: whoever reaches the port can read, change and inject traffic"
        ),
    }
}

/// A permission, with all ports in words.
fn in_words(allow: &str) -> String {
    match allow.strip_suffix(":1-65535") {
        Some(hosts) => format!("{hosts} (every port)"),
        None => allow.to_owned(),
    }
}

/// A time in the largest unit that keeps it exact.
fn span(time: Duration) -> String {
    for (unit, seconds) in [("h", 3_600), ("min", 60)] {
        let whole = time.as_secs();
        if time.subsec_nanos() == 0 && whole > 0 && whole.is_multiple_of(seconds) {
            return format!("{} {unit}", whole / seconds);
        }
    }
    format_duration(time)
}

/// In the unit that keeps it exact.
fn size(amount: ByteCount) -> String {
    for (unit, octets) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if amount.0 >= octets && amount.0.is_multiple_of(octets) {
            return format!("{}{unit}", amount.0 / octets);
        }
    }
    amount.to_string()
}

/// The fate of UDP messages that are late, if there is a deadline.
fn late_messages(flow: &FlowClass) -> String {
    let messages = flow.thin_messages.and_then(|thin| thin.goal());
    if let Some(goal) = messages.filter(DeliveryGoal::takes_back) {
        format!(
            ", UDP messages in any order and given up after {}, so that {} % of them come in time",
            format_duration(goal.deadline),
            f64::from(1_000_000 - goal.missed_millionths.min(1_000_000)) / 1e4,
        )
    } else if let Some(deadline) = flow.deadline {
        format!(
            ", but UDP messages that are older than {} are dropped and counted",
            format_duration(deadline)
        )
    } else {
        String::new()
    }
}

/// The part of mode `nack`'s promise that follows from the carriers to the peers.
fn asked_again(peers: &[PeerSettings]) -> String {
    let is_mended = |peer: &&PeerSettings| peer.carrier.may_let_damage_in();
    let names: Vec<String> = peers
        .iter()
        .filter(is_mended)
        .map(|peer| format!("`{}`", peer.name))
        .collect();
    if names.is_empty() {
        // Where a checksum drops what is damaged, no damaged TPDU is left to be asked for.
        return "between gateways no more assurance than mode unreliable: a damaged datagram is dropped \
                like a lost one, and nothing is asked for again"
            .to_owned();
    }
    let others = if names.len() < peers.len() {
        "; to other peers a damaged datagram is dropped like a lost one, and nothing is asked for again"
    } else {
        ""
    };
    format!(
        "what arrives at {} damaged beyond repair is asked for again, what is lost is not{others}",
        names.join(" or ")
    )
}

/// The promises of a class to these peers, in one line.
pub fn describe_class(class: &ClassSettings, peers: &[PeerSettings]) -> String {
    let flow = &class.flow;
    let of_nack;
    let promise = match flow.mode {
        Mode::Reliable | Mode::HybridNackMack => {
            "everything arrives; a client sees its connection end in order only after the destination has all of it"
        }
        Mode::NearReliable => {
            "everything arrives; the client is told so at once, before the destination has it"
        }
        Mode::HybridNack => {
            of_nack = asked_again(peers);
            &of_nack
        }
        Mode::QuasiReliable if flow.block.is_some() => {
            "repair symbols stand in for lost TPDUs as far as they reach, nothing is sent again"
        }
        Mode::QuasiReliable => {
            "no more assurance than the link gives: no fec_block is set, and nothing is sent again"
        }
        Mode::Unreliable => "no more assurance than the link gives, in order",
        Mode::Datagram => "no more assurance than the link gives",
    };
    let mode = if class.is_auto {
        "auto"
    } else {
        flow.mode.name()
    };
    let mut text = format!("mode {mode} ({promise}), priority {}", flow.priority.0);
    if let Some((thin, goal)) = flow.thin.and_then(|thin| Some((thin, thin.goal()?))) {
        let _ = write!(
            text,
            ", repaired by copies and repair symbols so that {} % of the messages of a thin stream within {} arrive, as far as \
             {} % more octets than repetition takes allow it",
            f64::from(1_000_000 - goal.missed_millionths.min(1_000_000)) / 1e4,
            format_duration(goal.deadline),
            thin.overhead_percent
        );
    }
    if flow.weight != 1 {
        let _ = write!(text, ", weight {}", flow.weight);
    }
    text.push_str(&late_messages(flow));
    if let Some(block) = flow.block {
        let _ = write!(
            text,
            ", {} repair symbols for every {} TPDUs",
            block.repairs(),
            block.k()
        );
    }
    if ModeRules::of(flow.mode).complete {
        let _ = write!(
            text,
            ", a client may be at most {} ahead of its destination",
            size(flow.window)
        );
    }
    match class.custody {
        CustodyPlace::None => {}
        CustodyPlace::Memory => {
            let _ = write!(
                text,
                ", up to {} of a flow kept in memory, which are lost with the gateway",
                size(class.keep)
            );
        }
        CustodyPlace::Disk => {
            let _ = write!(text, ", up to {} of a flow kept on disk", size(class.keep));
        }
    }
    text
}

fn classes(config: &GatewayConfig, rules: &ClassRules) -> String {
    let name = |class: usize| {
        config
            .classes
            .get(class)
            .map_or("?", |class| class.name.as_str())
    };
    let mut text = format!("class `{}`", name(rules.general));
    for (point, class) in &rules.dscp {
        let _ = write!(text, ", `{}` for {point}", name(*class));
    }
    for (ports, class) in &rules.ports {
        let _ = write!(text, ", `{}` for port {ports}", name(*class));
    }
    text
}

/// The name of the gateway at the end of a way.
fn end_of<'a>(config: &'a GatewayConfig, route: &'a GatewayRoute) -> &'a str {
    let last = route.beyond.last().map(HostName::as_str);
    last.unwrap_or_else(|| config.peer_name(route.peer))
}

fn entries(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    for forward in &config.forwards {
        let what = match forward.protocol {
            EntryProtocol::Tcp => "TCP connections",
            EntryProtocol::Udp => "UDP datagrams",
        };
        writeln!(
            out,
            "{what} to {} go on from `{}` to {}; {}",
            forward.listen,
            end_of(config, &forward.route),
            forward.to,
            classes(config, &forward.classes)
        )?;
    }
    for socks in &config.socks {
        let who = match &socks.login {
            Some(login) => format!("for user `{}` with a password", login.user),
            None => "for everybody who reaches it, without a password".to_owned(),
        };
        writeln!(
            out,
            "SOCKS5 proxy at {} {who}; its connections go on from `{}`; TCP: {}; UDP: {}",
            socks.listen,
            end_of(config, &socks.route),
            classes(config, &socks.tcp),
            classes(config, &socks.udp)
        )?;
    }
    for entry in &config.transparent {
        writeln!(
            out,
            "{} that the kernel diverts to {} goes on from `{}`; {} (--print-rules prints the kernel's rules)",
            entry.protocol.name(),
            entry.listen,
            end_of(config, &entry.route),
            classes(config, &entry.classes)
        )?;
    }
    tunnels(config, out)?;
    let tcp_dscp = config
        .forwards
        .iter()
        .filter(|forward| forward.protocol == EntryProtocol::Tcp)
        .map(|forward| &forward.classes)
        .chain(config.socks.iter().map(|socks| &socks.tcp))
        .any(ClassRules::needs_dscp);
    if tcp_dscp {
        writeln!(
            out,
            "code points of TCP clients are seen only with sysctl net.ipv4.tcp_reflect_tos=1"
        )?;
    }
    Ok(())
}

fn tunnels(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    for tunnel in &config.tunnels {
        let addresses: Vec<String> = tunnel.addresses.iter().map(ToString::to_string).collect();
        let routes: Vec<String> = tunnel.routes.iter().map(ToString::to_string).collect();
        let routes = match &routes[..] {
            [] => String::new(),
            networks => format!(" and {} behind it", networks.join(", ")),
        };
        writeln!(
            out,
            "any IP packet sent into the device {} ({}, at most {} octets) comes out of tunnel `{}` of `{}`, which reaches \
             the device's networks{routes}; {}",
            tunnel.device,
            addresses.join(", "),
            tunnel.mtu,
            tunnel.name,
            config.peer_name(tunnel.peer),
            classes(config, &tunnel.classes)
        )?;
        if tunnel.accelerate {
            writeln!(
                out,
                "TCP that would go into the device {} ends here instead and goes on from `{}`, as far as its [egress] allows: \
                 an acknowledgement is this gateway's (accelerate)",
                tunnel.device,
                config.peer_name(tunnel.peer)
            )?;
        }
    }
    Ok(())
}

fn limits(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let limits = &config.limits;
    writeln!(
        out,
        "at most {} flows at once, shared among the peers and their clients, in at most {} of memory",
        limits.flows,
        size(limits.memory),
    )?;
    writeln!(
        out,
        "a flow without traffic ends: TCP after {}, or after {} if its client has sent nothing at all; UDP after {}",
        span(limits.tcp_idle),
        span(limits.tcp_silent),
        span(limits.udp_idle),
    )?;
    writeln!(
        out,
        "while the link is down, flows wait for up to {}",
        span(limits.outage)
    )?;
    let keeps = config
        .classes
        .iter()
        .any(|class| class.custody != CustodyPlace::None);
    if keeps {
        let custody = &config.custody;
        let limit = size(custody.limit);
        let place = match (&custody.directory, custody.sync) {
            (Some(directory), sync) => {
                let when = match sync {
                    SyncPolicy::Always => "synced before it counts".to_owned(),
                    SyncPolicy::Every(pause) => format!("synced every {}", span(pause)),
                    SyncPolicy::Never => "not synced".to_owned(),
                };
                let kept = match custody.keep_for {
                    Some(time) => format!(
                        "; for {} after the gateway was killed, connections wait for the next one",
                        span(time)
                    ),
                    None => "; connections end with the gateway".to_owned(),
                };
                format!("; on disk in {}, {when}{kept}", directory.display())
            }
            (None, _) => String::new(),
        };
        writeln!(
            out,
            "custody holds at most {limit}{place}; beyond it, clients wait"
        )?;
    }
    match (config.metrics, &config.state_dir) {
        (Some(metrics), _) => writeln!(
            out,
            "live page at http://{metrics}/, figures at /metrics and /status"
        ),
        (None, _) => Ok(()),
    }?;
    if let Some(capture) = &config.capture {
        writeln!(
            out,
            "packets are captured to {}, at most {}, with user data in clear",
            capture.file.display(),
            size(capture.max_size)
        )?;
    }
    if let Some(trace) = &config.trace {
        writeln!(
            out,
            "events are traced to {}, at most {}",
            trace.file.display(),
            size(trace.max_size)
        )?;
    }
    state_place_of(config, out)
}

fn state_place_of(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let below =
        |directory: PathBuf| format!("a directory of its own below {}", directory.display());
    let named = config
        .state_dir
        .as_ref()
        .map(|directory| directory.display().to_string());
    match named.or_else(|| state_place::base().map(below)) {
        Some(place) => writeln!(out, "state is kept in {place}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::built_in;
    use super::*;
    use core::num::NonZeroU8;
    use fulmar_proto::fec::block::BlockPlan;

    fn told(mode: Mode, block: Option<BlockPlan>) -> String {
        let mut class = built_in();
        class.flow.mode = mode;
        class.flow.block = block;
        describe_class(&class, &[])
    }

    /// A gateway with these further lines of its peers' carriers, said back.
    fn said_of(carriers: &[&str]) -> String {
        let mut text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n\
                        [class.video]\nmode = \"nack\"\n"
            .to_owned();
        for (place, carrier) in carriers.iter().enumerate() {
            let peer = [
                "[[peer]]",
                &format!("name = \"b{place}\""),
                &format!("carrier = \"{carrier}\""),
                "",
            ];
            text.push_str(&peer.join("\n"));
        }
        explain(&GatewayConfig::read("a.toml", &text).expect("it is sound"))
    }

    #[test]
    fn mode_nack_asks_again_for_what_a_carrier_without_checksum_brings_damaged() {
        let asked = "damaged beyond repair is asked for again, what is lost is not";
        let nothing = "nothing is asked for again";
        let checked = said_of(&["udp"]);
        assert!(
            checked.contains(nothing) && !checked.contains(asked),
            "{checked}"
        );
        for carrier in ["udp-nochecksum", "auto"] {
            let unchecked = said_of(&[carrier]);
            let words = format!("what arrives at `b0` {asked}");
            assert!(unchecked.contains(&words), "{unchecked}");
            assert!(!unchecked.contains(nothing), "{unchecked}");
        }
        let both = said_of(&["udp", "udp-nochecksum"]);
        let words = format!("what arrives at `b1` {asked}; to other peers");
        assert!(both.contains(&words) && both.contains(nothing), "{both}");
    }

    #[test]
    fn nothing_is_promised_that_a_session_leaves_undone() {
        // Without a carrier that lets damage in, mode nack has nothing to ask for.
        let nack = told(Mode::HybridNack, None);
        assert!(nack.contains("nothing is asked for again"), "{nack}");
        assert!(nack.contains("mode unreliable"), "{nack}");
        // Without a block there is no parity over TPDUs, whatever the mode is called.
        let bare = told(Mode::QuasiReliable, None);
        assert!(bare.contains("no fec_block is set"), "{bare}");
        let twenty = NonZeroU8::new(20).expect("not 0");
        let plan = BlockPlan::new(twenty, 4, Duration::from_millis(20));
        let block = told(Mode::QuasiReliable, plan);
        assert!(block.contains("repair symbols stand in"), "{block}");
        assert!(block.contains("4 repair symbols for every 20"), "{block}");
    }

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

    #[test]
    fn times_ports_and_sizes_are_said_as_people_say_them() {
        for (seconds, said) in [
            (86_400, "24 h"),
            (14_400, "4 h"),
            (300, "5 min"),
            (90, "90s"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), said);
        }
        assert_eq!(span(Duration::from_millis(1_500)), "1500ms");
        assert_eq!(in_words("localhost:1-65535"), "localhost (every port)");
        assert_eq!(in_words("10.0.0.0/8:443"), "10.0.0.0/8:443");
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                    rate = \"5mbit\"\n[egress]\nallow = [\"localhost:1-65535\"]\n";
        let config = GatewayConfig::read("a.toml", text).expect("it is sound");
        let told = explain(&config);
        for unsaid in ["86400", "14400", "65535", "300s"] {
            assert!(!told.contains(unsaid), "{unsaid} in {told}");
        }
    }

    #[test]
    fn what_memory_keeps_is_said_to_go_with_the_gateway() {
        let mut class = built_in();
        class.flow.mode = Mode::NearReliable;
        class.custody = CustodyPlace::Memory;
        let memory = describe_class(&class, &[]);
        assert!(memory.contains("lost with the gateway"), "{memory}");
        class.custody = CustodyPlace::Disk;
        let disk = describe_class(&class, &[]);
        assert!(!disk.contains("lost with the gateway"), "{disk}");
    }
}
