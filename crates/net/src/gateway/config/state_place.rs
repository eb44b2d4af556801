//! The place where a gateway keeps what must survive a restart.

use super::{GatewayConfig, Keys};
use crate::gateway::GatewayError;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The octets of a key's hash: two gateways of one machine share no directory by accident.
const FINGERPRINT_BYTES: usize = 8;

/// The directory for the state of all gateways of this user, where none is configured. It is the one that systemd
/// made for the service, else the user's (XDG Base Directory Specification 0.8), for root the machine's.
pub(super) fn default_base(
    variable: impl Fn(&str) -> Option<OsString>,
    is_root: bool,
) -> Option<PathBuf> {
    // Relative ones are to be ignored, says the specification.
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    if let Some(list) = variable("STATE_DIRECTORY") {
        let first = env::split_paths(&list).next();
        if let Some(first) = first.filter(|path| path.is_absolute()) {
            return Some(first);
        }
    }
    if let Some(state) = variable("XDG_STATE_HOME").and_then(absolute) {
        return Some(state.join("fulmar"));
    }
    if is_root {
        return Some(PathBuf::from("/var/lib/fulmar"));
    }
    let home = variable("HOME").and_then(absolute)?;
    Some(home.join(".local/state/fulmar"))
}

/// The one of this process.
pub(crate) fn base() -> Option<PathBuf> {
    default_base(
        |name| env::var_os(name),
        rustix::process::geteuid().is_root(),
    )
}

/// Where this gateway keeps its state.
pub(in crate::gateway) fn directory(
    config: &GatewayConfig,
    keys: &Keys,
) -> Result<PathBuf, GatewayError> {
    if let Some(directory) = &config.state_dir {
        return Ok(directory.clone());
    }
    let base = base().ok_or(GatewayError::StatePlace)?;
    Ok(base.join(fingerprint(keys)))
}

fn fingerprint(keys: &Keys) -> String {
    let hash = match (&keys.identity, &keys.preset) {
        (Some(identity), _) => *blake3::hash(&identity.public().octets()[..]).as_bytes(),
        (None, Some(preset)) => preset.fingerprint(),
        (None, None) => return "unprotected".to_owned(),
    };
    let mut text = blake3::Hash::from_bytes(hash).to_hex().to_string();
    text.truncate(2 * FINGERPRINT_BYTES);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_services_else_the_users_else_the_machines() {
        let with = |set: &[(&str, &str)], is_root| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let base = default_base(variable, is_root);
            base.map(|path| path.display().to_string())
        };
        let home = ("HOME", "/home/u");
        let xdg = ("XDG_STATE_HOME", "/s");
        let service = ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
        assert_eq!(
            with(&[home, xdg, service], true).as_deref(),
            Some("/var/lib/a")
        );
        assert_eq!(with(&[home, xdg], true).as_deref(), Some("/s/fulmar"));
        assert_eq!(with(&[home], true).as_deref(), Some("/var/lib/fulmar"));
        assert_eq!(
            with(&[home], false).as_deref(),
            Some("/home/u/.local/state/fulmar")
        );
        let relative = ("XDG_STATE_HOME", "s");
        assert_eq!(
            with(&[home, relative], false).as_deref(),
            Some("/home/u/.local/state/fulmar")
        );
        assert_eq!(with(&[], false), None);
    }
}
