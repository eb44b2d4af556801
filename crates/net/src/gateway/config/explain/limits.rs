//! Limits, custody and files in words.

use super::quantities::{size, span};
use crate::custody::SyncPolicy;
use crate::gateway::config::class::CustodyPlace;
use crate::gateway::config::settings::GatewayConfig;
use crate::gateway::config::state_place;
use core::fmt::Write;
use std::path::PathBuf;

pub(super) fn limits(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let limits = &config.limits;
    writeln!(
        out,
        "at most {} flows at once, shared among the peers and their clients, in at most {} of memory",
        limits.flows,
        size(limits.memory),
    )?;
    writeln!(
        out,
        "a flow without traffic ends: TCP after {}, or after {} if its client has sent nothing at all; UDP after {}",
        span(limits.tcp_idle),
        span(limits.tcp_silent),
        span(limits.udp_idle),
    )?;
    writeln!(
        out,
        "while the link is down, flows wait for up to {}",
        span(limits.outage)
    )?;
    let keeps = config
        .classes
        .iter()
        .any(|class| class.custody != CustodyPlace::None);
    if keeps {
        let custody = &config.custody;
        let limit = size(custody.limit);
        let place = match (&custody.directory, custody.sync) {
            (Some(directory), sync) => {
                let when = match sync {
                    SyncPolicy::Always => "synced before it counts".to_owned(),
                    SyncPolicy::Every(pause) => format!("synced every {}", span(pause)),
                    SyncPolicy::Never => "not synced".to_owned(),
                };
                let kept = match custody.keep_for {
                    Some(time) => format!(
                        "; for {} after the gateway was killed, connections wait for the next one",
                        span(time)
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
            "live page at http://{metrics}/, figures at /metrics and /status"
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
    state_place_of(config, out)
}

fn state_place_of(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    let below =
        |directory: PathBuf| format!("a directory of its own below {}", directory.display());
    let named = config
        .state_dir
        .as_ref()
        .map(|directory| directory.display().to_string());
    match named.or_else(|| state_place::base().map(below)) {
        Some(place) => writeln!(out, "state is kept in {place}"),
        None => Ok(()),
    }
}
