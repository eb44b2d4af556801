//! The needs of one gateway's configuration: of this machine, and of the way to its peers.

use super::finding::{Finding, chain};
use super::{peers, privileges, tunnels};
use crate::gateway::config::GatewayConfig;
use crate::gateway::{GatewayError, check, state_base};
use crate::session::KeyFileError;
use crate::udp::{PortConfig, UdpPort};
use fulmar_proto::units::ByteCount;
use rustix::fs::{Access, access, statvfs};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Checks keys, directories, ports and peers. Peers are asked for the version that they speak, which leaves no
/// trace in their sessions. Nothing is written.
pub fn gateway(config: &GatewayConfig) -> Vec<Finding> {
    let mut findings = vec![keys(config), port(config)];
    if let Some(directory) = config.state_dir.clone().or_else(state_base) {
        findings.push(writable("state directory", &directory));
    }
    if let Some(directory) = &config.custody.directory {
        findings.push(room(directory, config.custody.limit));
    }
    if !config.transparent.is_empty()
        && let Err((found, remedy)) = privileges::transparent_socket()
    {
        findings.push(Finding::bad("[[transparent]]", found, remedy));
    }
    findings.extend(tunnels::each(config));
    findings.extend(tunnels::forwarding(config));
    findings.extend(peers::paths(config));
    findings.extend(peers::reachable(config));
    findings
}

fn keys(config: &GatewayConfig) -> Finding {
    const CHECK: &str = "keys and rules";
    match check(config) {
        Ok(_) => Finding::good(CHECK, format!("read; security {}", config.security.name())),
        Err(error) => Finding::bad(CHECK, chain(&error), cure(&error)),
    }
}

/// The cure of what keeps a gateway from starting. A key file's own words have the command for that file.
fn cure(error: &GatewayError) -> &'static str {
    match error {
        GatewayError::KeyFile(KeyFileError::Read { source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            "give the key file to the user who runs the gateway (chown USER FILE), with mode 600"
        }
        GatewayError::KeyFile(KeyFileError::Mode { .. }) => {
            "let nobody else read the key file (chmod 600 FILE)"
        }
        GatewayError::KeyFile(KeyFileError::Missing {
            elsewhere: Some(_), ..
        }) => {
            "write the whole path of that file, or move it to where it is looked for: relative names count from the folder of the configuration"
        }
        GatewayError::KeyFile(_) => {
            "name the file of this gateway's key; only if it has none yet, `fulmar keygen FILE` makes one, whose public key the other end needs"
        }
        _ => "`fulmar gateway --check -c FILE` says more",
    }
}

fn port(config: &GatewayConfig) -> Finding {
    let check = format!("UDP port {}", config.listen);
    match UdpPort::bind(config.listen, PortConfig::default()) {
        Ok(_) => Finding::good(check, "free"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::poor(
            check,
            "in use",
            "if this gateway runs already, all is well; else stop what has it (ss -ulpn), or write \
             another listen",
        ),
        Err(error) => Finding::bad(
            check,
            error.to_string(),
            "write an address of this machine in listen, or none before the colon",
        ),
    }
}

/// The nearest ancestor that exists.
fn nearest(directory: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(directory).ok()?;
    let existing = whole.ancestors().find(|place| place.exists());
    existing.map(Path::to_owned)
}

/// The nearest ancestor that exists must take a new directory.
fn writable(check: &str, directory: &Path) -> Finding {
    let shown = directory.display();
    let Some(existing) = nearest(directory) else {
        return Finding::bad(
            check,
            format!("{shown} has no parent"),
            "write an absolute path",
        );
    };
    match access(&existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::good(check, shown.to_string()),
        Err(error) => Finding::bad(
            check,
            format!("{}: {error}", existing.display()),
            format!("let this user write there, or make {shown} and give it to this user"),
        ),
    }
}

fn room(directory: &Path, limit: ByteCount) -> Finding {
    const CHECK: &str = "custody directory";
    let finding = writable(CHECK, directory);
    let Some(Ok(space)) = nearest(directory).map(statvfs) else {
        return finding;
    };
    if finding.remedy.is_some() {
        return finding;
    }
    let free = ByteCount(space.f_bavail.saturating_mul(space.f_frsize));
    let found = format!("{}: {free} free, limit {limit}", directory.display());
    if free < limit {
        let remedy =
            "free some space, or lower [custody] limit: clients wait while the disk is full";
        Finding::poor(CHECK, found, remedy)
    } else {
        Finding::good(CHECK, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;
    use crate::session::{Entropy, SecretKey, write_secret_key};
    use rustix::process::geteuid;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn a_directory_that_can_be_made_is_good_and_stays_unmade() {
        let root = tempfile::tempdir().unwrap();
        let wanted = root.path().join("a/b");
        assert_eq!(
            writable("state directory", &wanted).verdict,
            FindingVerdict::Good
        );
        assert!(!wanted.exists());
        let relative = Path::new("no-such-directory/here");
        assert_eq!(
            writable("state directory", relative).verdict,
            FindingVerdict::Good
        );
        // A path that is no directory takes no directory.
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let verdict = writable("state directory", &file.join("b")).verdict;
        assert_eq!(verdict, FindingVerdict::Bad);
    }

    #[test]
    fn the_cure_of_a_key_file_is_that_of_its_fault() {
        let place = tempfile::tempdir().unwrap();
        let key = place.path().join("a.key");
        let text = format!(
            "[security]\nkind = \"noise\"\nprivate_key_file = \"{}\"\n[[peer]]\nname = \"b\"\nrate = \"1mbit\"\n\
             public_key = \"{}\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n",
            key.display(),
            SecretKey::generate(&mut Entropy::from_seed([1; 32])).public()
        );
        let config = GatewayConfig::read("a.toml", &text).unwrap();
        let cured_by = |word: &str| {
            let finding = keys(&config);
            assert_eq!(finding.verdict, FindingVerdict::Bad);
            let remedy = finding.remedy.unwrap();
            assert!(remedy.contains(word), "{}: {remedy}", finding.found);
        };
        cured_by("keygen");
        let own = SecretKey::generate(&mut Entropy::from_seed([2; 32]));
        write_secret_key(&key, &own).unwrap();
        assert_eq!(keys(&config).verdict, FindingVerdict::Good);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        cured_by("chmod 600");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        // Only root can give files away.
        if geteuid().is_root() {
            chown(&key, Some(12_345), None).unwrap();
            cured_by("chown");
        }
    }

    #[test]
    fn less_room_than_custody_may_take_is_poor() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            room(root.path(), ByteCount(1)).verdict,
            FindingVerdict::Good
        );
        assert_eq!(
            room(root.path(), ByteCount(u64::MAX)).verdict,
            FindingVerdict::Poor
        );
    }
}
