//! Our keys, as the files that the configuration names have them.

use super::SecurityKind;
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

/// Reads our keys.
pub(in crate::gateway) fn read_keys(kind: &SecurityKind) -> Result<Keys, GatewayError> {
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
