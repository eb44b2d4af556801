//! Classes in words: the promises of each, and which traffic is given which.

use super::quantities::size;
use crate::gateway::config::class::{ClassRules, ClassSettings, CustodyPlace};
use crate::gateway::config::settings::{GatewayConfig, PeerSettings};
use core::fmt::Write;
use fulmar_proto::repair::DeliveryGoal;
use fulmar_proto::splice::FlowClass;
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::format_duration;
use fulmar_proto::wire::Mode;

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
pub(super) fn describe_class(class: &ClassSettings, peers: &[PeerSettings]) -> String {
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

pub(super) fn classes(config: &GatewayConfig, rules: &ClassRules) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::class::built_in;
    use crate::gateway::config::explain::explain;
    use core::num::NonZeroU8;
    use fulmar_proto::fec::block::BlockPlan;
    use fulmar_proto::units::Duration;

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
