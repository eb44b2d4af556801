//! A configuration said back in words, so that a slip shows before traffic does.

use super::class::{ClassRules, ClassSettings, Custody};
use super::read::MTU_MIN;
use super::settings::{GatewayConfig, PeerSettings, Protocol, SecurityKind};
use crate::custody::SyncPolicy;
use crate::gateway::config::state_place;
use core::fmt::Write;
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::{ByteCount, format_duration};
use fulmar_proto::wire::Mode;

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
        "gateway `{}` speaks with its peers over UDP port {}",
        config.name, config.listen
    )?;
    security(config, out)?;
    for peer in &config.peers {
        let place = match &peer.address {
            Some(address) => format!("is called at {address}"),
            None => "calls us, from anywhere".to_owned(),
        };
        let keys = match peer.public_keys().count() {
            2 => ", under either of its two keys",
            _ => "",
        };
        writeln!(
            out,
            "peer `{}` {place}{keys}; at most {} towards it, in packets of {}",
            peer.name,
            peer.rate,
            packets(peer)
        )?;
    }
    for class in &config.classes {
        writeln!(out, "class `{}`: {}", class.name, describe_class(class))?;
    }
    entries(config, out)?;
    if config.egress.allow.is_empty() {
        writeln!(out, "peers' clients may connect to nothing from here")?;
    } else {
        let allowed: Vec<String> = config
            .egress
            .allow
            .iter()
            .map(ToString::to_string)
            .collect();
        writeln!(
            out,
            "peers' clients may connect from here to {}; a destination has {} to answer",
            allowed.join(", "),
            format_duration(config.egress.connect_timeout)
        )?;
    }
    limits(config, out)
}

fn packets(peer: &PeerSettings) -> String {
    if peer.mtu_discovery && peer.mtu > MTU_MIN {
        format!(
            "{MTU_MIN} at first, and as large as the path is found to carry, {} at most",
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

/// In the unit that keeps it exact.
fn size(amount: ByteCount) -> String {
    for (unit, octets) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if amount.0 >= octets && amount.0.is_multiple_of(octets) {
            return format!("{}{unit}", amount.0 / octets);
        }
    }
    amount.to_string()
}

/// The promises of a class, in one line.
pub fn describe_class(class: &ClassSettings) -> String {
    let flow = &class.flow;
    let promise = match flow.mode {
        Mode::Reliable | Mode::HybridNackMack => {
            "everything arrives; the client's end waits for the destination's acknowledgement"
        }
        Mode::NearReliable => "everything arrives; the client is acknowledged at once",
        // A session drops datagrams whose tag does not fit, so no damaged TPDU is left to be asked for.
        Mode::HybridNack => {
            "between gateways no more assurance than mode unreliable: a damaged datagram is dropped \
             like a lost one, and nothing is asked for again"
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
    let mut text = format!(
        "mode {} ({promise}), priority {}",
        flow.mode, flow.priority.0
    );
    if flow.weight != 1 {
        let _ = write!(text, ", weight {}", flow.weight);
    }
    if let Some(deadline) = flow.deadline {
        let _ = write!(text, ", late after {}", format_duration(deadline));
    }
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
            ", at most {} ahead of the destination",
            size(flow.window)
        );
    }
    match class.custody {
        Custody::None => {}
        Custody::Memory => {
            let _ = write!(
                text,
                ", up to {} of a flow kept in memory, which are lost with the gateway",
                size(class.keep)
            );
        }
        Custody::Disk => {
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

fn entries(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let peer = |index: usize| {
        config
            .peers
            .get(index)
            .map_or("?", |peer| peer.name.as_str())
    };
    for forward in &config.forwards {
        writeln!(
            out,
            "{} port {} stands for {} at `{}`; {}",
            forward.protocol.name(),
            forward.listen,
            forward.to,
            peer(forward.peer),
            classes(config, &forward.classes)
        )?;
    }
    for socks in &config.socks {
        let who = match &socks.login {
            Some(login) => format!("for user `{}`", login.user),
            None => "for everybody who reaches it".to_owned(),
        };
        writeln!(
            out,
            "SOCKS5 proxy at {} {who}, out at `{}`; TCP: {}; UDP: {}",
            socks.listen,
            peer(socks.peer),
            classes(config, &socks.tcp),
            classes(config, &socks.udp)
        )?;
    }
    for entry in &config.transparent {
        writeln!(
            out,
            "{} that the kernel diverts to {} goes out at `{}`; {} (see --print-rules)",
            entry.protocol.name(),
            entry.listen,
            peer(entry.peer),
            classes(config, &entry.classes)
        )?;
    }
    let tcp_dscp = config
        .forwards
        .iter()
        .filter(|forward| forward.protocol == Protocol::Tcp)
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

fn limits(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let limits = &config.limits;
    writeln!(
        out,
        "at most {} flows, shared among peers and their clients, and {} of memory for them; idle TCP ends after {}, \
         after {} if its client never spoke, idle UDP after {}; flows outlive a link that is down for {}",
        limits.flows,
        size(limits.memory),
        format_duration(limits.tcp_idle),
        format_duration(limits.tcp_silent),
        format_duration(limits.udp_idle),
        format_duration(limits.outage)
    )?;
    let keeps = config
        .classes
        .iter()
        .any(|class| class.custody != Custody::None);
    if keeps {
        let custody = &config.custody;
        let limit = size(custody.limit);
        let place = match (&custody.directory, custody.sync) {
            (Some(directory), sync) => {
                let when = match sync {
                    SyncPolicy::Always => "synced before it counts".to_owned(),
                    SyncPolicy::Every(span) => format!("synced every {}", format_duration(span)),
                    SyncPolicy::Never => "not synced".to_owned(),
                };
                let kept = match custody.keep_for {
                    Some(span) => format!(
                        "; connections stand for {} after the gateway was killed",
                        format_duration(span)
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
            "metrics at http://{metrics}/metrics, status at /status"
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
    match config.state_dir.clone().or_else(state_place::base) {
        Some(directory) => writeln!(out, "state is kept in {}", directory.display()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::built_in;
    use super::*;
    use core::num::NonZeroU8;
    use core::time::Duration;
    use fulmar_proto::fec::block::BlockPlan;

    fn told(mode: Mode, block: Option<BlockPlan>) -> String {
        let mut class = built_in();
        class.flow.mode = mode;
        class.flow.block = block;
        describe_class(&class)
    }

    #[test]
    fn nothing_is_promised_that_a_session_leaves_undone() {
        // A damaged datagram fails its tag and is dropped: mode nack has nothing to ask for.
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
    fn what_memory_keeps_is_said_to_go_with_the_gateway() {
        let mut class = built_in();
        class.flow.mode = Mode::NearReliable;
        class.custody = Custody::Memory;
        let memory = describe_class(&class);
        assert!(memory.contains("lost with the gateway"), "{memory}");
        class.custody = Custody::Disk;
        let disk = describe_class(&class);
        assert!(!disk.contains("lost with the gateway"), "{disk}");
    }
}
