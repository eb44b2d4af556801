//! The egress in words: the destinations that clients of the peers may have from here.

use super::quantities::span;
use crate::gateway::config::own_entries;
use crate::gateway::config::settings::GatewayConfig;
use core::fmt::Write;

pub(super) fn egress(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
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

/// A permission, with all ports in words.
fn in_words(allow: &str) -> String {
    match allow.strip_suffix(":1-65535") {
        Some(hosts) => format!("{hosts} (every port)"),
        None => allow.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_said_in_words() {
        assert_eq!(in_words("localhost:1-65535"), "localhost (every port)");
        assert_eq!(in_words("10.0.0.0/8:443"), "10.0.0.0/8:443");
    }
}
