//! The interfaces that a path may begin with.

use super::finding::Finding;
use fulmar_proto::units::ByteCount;
use std::fs;
use std::path::Path;

const INTERFACES: &str = "/sys/class/net";
/// Gateways need IP packets of this size (IPv6's least MTU, RFC 8200 section 5).
const PACKET_LEAST: ByteCount = ByteCount(1_280);

/// One finding for each interface that is up, but loopback.
pub(super) fn interfaces() -> Vec<Finding> {
    of(Path::new(INTERFACES))
}

fn of(directory: &Path) -> Vec<Finding> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != "lo")
        .collect();
    names.sort_unstable();
    let read = |name: &str, file: &str| fs::read_to_string(directory.join(name).join(file)).ok();
    let mut findings = Vec::new();
    for name in names {
        let up = read(&name, "operstate").is_some_and(|state| state.trim() != "down");
        let mtu = read(&name, "mtu").and_then(|text| text.trim().parse().ok());
        if let (true, Some(mtu)) = (up, mtu) {
            findings.push(judge(&name, ByteCount(mtu)));
        }
    }
    findings
}

fn judge(name: &str, mtu: ByteCount) -> Finding {
    let check = format!("interface {name}");
    let found = format!("MTU {mtu}");
    if mtu < PACKET_LEAST {
        let remedy = format!(
            "gateways need packets of {PACKET_LEAST}: ip link set {name} mtu 1280, or another way"
        );
        Finding::poor(check, found, remedy)
    } else {
        Finding::good(check, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;

    #[test]
    fn interfaces_that_are_up_are_judged_by_their_mtu() {
        let root = tempfile::tempdir().unwrap();
        for (name, state, mtu) in [
            ("lo", "unknown", "65536"),
            ("eth0", "up", "1500"),
            ("slow0", "unknown", "576"),
            ("gone0", "down", "576"),
        ] {
            let place = root.path().join(name);
            fs::create_dir(&place).unwrap();
            fs::write(place.join("operstate"), format!("{state}\n")).unwrap();
            fs::write(place.join("mtu"), format!("{mtu}\n")).unwrap();
        }
        let verdicts: Vec<_> = of(root.path())
            .into_iter()
            .map(|finding| (finding.check, finding.verdict))
            .collect();
        assert_eq!(
            verdicts,
            [
                ("interface eth0".to_owned(), FindingVerdict::Good),
                ("interface slow0".to_owned(), FindingVerdict::Poor),
            ]
        );
    }
}
