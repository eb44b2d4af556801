//! What a reload may change, and what needs a restart.

use super::class::Custody;
use super::settings::{GatewayConfig, PeerSettings};

/// Whether a class keeps octets on disk, for which the store is opened at the start.
fn keeps_on_disk(config: &GatewayConfig) -> bool {
    let mut classes = config.classes.iter();
    classes.any(|class| class.custody == Custody::Disk)
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
    check(running.state_dir != new.state_dir, "gateway.state_dir");
    check(running.security != new.security, "security");
    check(running.custody != new.custody, "custody");
    check(
        keeps_on_disk(new) && !keeps_on_disk(running),
        "class (the first with custody = \"disk\")",
    );
    check(running.limits != new.limits, "limits");
    check(running.metrics != new.metrics, "metrics.listen");
    check(running.capture != new.capture, "capture");
    check(running.trace != new.trace, "trace");
    let identity = |peer: &PeerSettings| {
        let PeerSettings {
            name,
            address,
            public_key,
            mtu,
            mtu_discovery,
            ..
        } = peer.clone();
        (name, address, public_key, mtu, mtu_discovery)
    };
    let peers = |config: &GatewayConfig| config.peers.iter().map(identity).collect::<Vec<_>>();
    check(peers(running) != peers(new), "peer (everything but rate)");
    fixed
}

/// `new` with everything that cannot change as it is in `running`.
pub fn merge(running: &GatewayConfig, new: GatewayConfig) -> GatewayConfig {
    let names = |config: &GatewayConfig| -> Vec<String> {
        config.peers.iter().map(|peer| peer.name.clone()).collect()
    };
    let same_peers = names(running) == names(&new);
    let mut peers = running.peers.clone();
    for peer in &mut peers {
        if let Some(changed) = new.peers.iter().find(|other| other.name == peer.name) {
            peer.rate = changed.rate;
        }
    }
    // Entries refer to peers by their places, with other peers they mean something else, and to
    // classes, of which one whose store is not open could promise nothing.
    let has_store = keeps_on_disk(running) || !keeps_on_disk(&new);
    let (forwards, socks, transparent, classes) = if same_peers && has_store {
        (new.forwards, new.socks, new.transparent, new.classes)
    } else {
        (
            running.forwards.clone(),
            running.socks.clone(),
            running.transparent.clone(),
            running.classes.clone(),
        )
    };
    GatewayConfig {
        peers,
        classes,
        forwards,
        socks,
        transparent,
        egress: new.egress,
        log: new.log,
        ..running.clone()
    }
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
        let fixed = read(&TEXT.replace("\"a\"", "\"c\"").replace("\"b\"", "\"d\""));
        let told = fixed_differences(&running, &fixed);
        assert_eq!(told, ["gateway.name", "peer (everything but rate)"]);
        assert_eq!(merge(&running, fixed), running);
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
