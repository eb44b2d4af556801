//! Our keys, as the files that the configuration names have them.

use super::{GatewayConfig, SecurityKind};
use crate::gateway::GatewayError;
use crate::session::{PresetKey, SecretKey, read_preset_key, read_secret_key};

/// Our keys, read from their files.
#[derive(Debug)]
pub(in crate::gateway) struct Keys {
    pub(in crate::gateway) identity: Option<SecretKey>,
    /// The former identity, by which peers may still call.
    pub(in crate::gateway) former: Option<SecretKey>,
    pub(in crate::gateway) preset: Option<PresetKey>,
}

/// Reads our keys, and refuses a peer that has one of them for its own.
pub(in crate::gateway) fn read_keys(config: &GatewayConfig) -> Result<Keys, GatewayError> {
    let keys = read_files(&config.security)?;
    if let SecurityKind::Noise {
        private_key_file,
        former_private_key_file,
        ..
    } = &config.security
    {
        let files = [Some(private_key_file), former_private_key_file.as_ref()];
        for (own, file) in [&keys.identity, &keys.former].into_iter().zip(files) {
            let own = own.as_ref().map(|own| own.public().to_string());
            let is_own = |key: &str| own.as_deref() == Some(key);
            let mut peers = config.peers.iter();
            let peer = peers.find(|peer| peer.public_keys().any(is_own));
            if let (Some(peer), Some(file)) = (peer, file) {
                return Err(GatewayError::OwnPublicKey {
                    place: peer.key_place.clone(),
                    file: file.clone(),
                });
            }
        }
    }
    Ok(keys)
}

fn read_files(kind: &SecurityKind) -> Result<Keys, GatewayError> {
    Ok(match kind {
        SecurityKind::Noise {
            private_key_file,
            former_private_key_file,
            preset_key_file,
        } => Keys {
            identity: Some(read_secret_key(private_key_file)?),
            former: former_private_key_file
                .as_deref()
                .map(read_secret_key)
                .transpose()?,
            preset: preset_key_file
                .as_deref()
                .map(read_preset_key)
                .transpose()?,
        },
        SecurityKind::Preset { preset_key_file } => Keys {
            identity: None,
            former: None,
            preset: Some(read_preset_key(preset_key_file)?),
        },
        SecurityKind::None => Keys {
            identity: None,
            former: None,
            preset: None,
        },
    })
}
