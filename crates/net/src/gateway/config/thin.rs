//! `overhead` of `[gateway]`: what repetitions of thin flows may cost beyond one for each loss.

use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_proto::units::Probability;
use fulmar_settings::{SettingsError, TableReader};

/// Reads the key; without it, the default.
pub(super) fn read(own: Option<&TableReader<'_>>) -> Result<ThinRepair, SettingsError> {
    let share = own
        .map(|own| own.value::<Probability>("overhead"))
        .transpose()?
        .flatten();
    Ok(share.map_or_else(ThinRepair::default, |share| ThinRepair {
        overhead_percent: percent(share),
    }))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 100"
)]
fn percent(share: Probability) -> u8 {
    (share.value() * 100.0).round() as u8
}

#[cfg(test)]
mod tests {
    use crate::gateway::config::GatewayConfig;

    #[test]
    fn the_overhead_of_thin_flows_is_a_share() {
        let read = |line: &str| {
            let text = format!(
                "[gateway]\n{line}\n[security]\nkind = \"none\"\n[[peer]]\nname = \"a\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n"
            );
            GatewayConfig::read("file", &text).map(|config| config.thin.overhead_percent)
        };
        assert_eq!(read("").unwrap(), 40);
        assert_eq!(read("overhead = \"0%\"").unwrap(), 0);
        assert_eq!(read("overhead = \"70%\"").unwrap(), 70);
        assert!(read("overhead = \"170%\"").is_err());
    }
}
