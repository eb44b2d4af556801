//! Addresses as typed.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::Context;
use std::net::{SocketAddr, ToSocketAddrs};

/// The address to send to that `text` stands for, which must have a port; otherwise as [`resolve`].
///
/// # Errors
/// As [`resolve`], with the code of a peer that is out of reach for a name without an address; or the port is
/// 0.
pub(crate) fn resolve_remote(what: &str, text: &str) -> Result<SocketAddr, Failure> {
    // The name server may be out of reach for a while, which is no mistake of the user's.
    let address = look_up(what, text, Exit::Unreachable)?;
    if address.port() == 0 {
        let cause = anyhow::anyhow!("{what} {text}: nobody can listen at port 0");
        return Err(Failure {
            exit: Exit::Usage,
            cause,
        });
    }
    Ok(address)
}

/// The text `HOST:PORT` of a host that was typed with its port or without.
pub(crate) fn with_port(host: &str, usual: u16) -> String {
    let is_bare_v6 = !host.starts_with('[') && host.matches(':').count() > 1;
    if is_bare_v6 {
        format!("[{host}]:{usual}")
    } else if host.contains(':') && !host.ends_with(']') {
        host.to_owned()
    } else {
        // The colons of `[::1]` are its own.
        format!("{host}:{usual}")
    }
}

/// The first address that `text` stands for; a missing host is every address. `what` names the flag
/// or argument in an error.
///
/// # Errors
/// The name does not resolve, or there is no port.
pub(crate) fn resolve(what: &str, text: &str) -> Result<SocketAddr, Failure> {
    look_up(what, text, Exit::Device)
}

fn look_up(what: &str, text: &str, unknown_exit: Exit) -> Result<SocketAddr, Failure> {
    let full = if text.starts_with(':') {
        format!("[::]{text}")
    } else {
        text.to_owned()
    };
    let host_and_port = full
        .rsplit_once(':')
        .filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    let Some((host, _)) = host_and_port else {
        let cause = anyhow::anyhow!(
            "{what} {text}: not an address; write HOST:PORT, such as 127.0.0.1:4914"
        );
        return Err(Failure {
            exit: Exit::Usage,
            cause,
        });
    };
    let unknown = || format!("{what} {text}: no address is known for the host {host}");
    let mut found = full
        .to_socket_addrs()
        .with_context(unknown)
        .or_exit(unknown_exit)?;
    found.next().with_context(unknown).or_exit(unknown_exit)
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn a_host_without_a_port_gets_the_usual_one() {
        for (typed, full) in [
            ("ground.example", "ground.example:4914"),
            ("ground.example:9", "ground.example:9"),
            ("10.0.0.2", "10.0.0.2:4914"),
            ("[fd00::2]", "[fd00::2]:4914"),
            ("[fd00::2]:9", "[fd00::2]:9"),
            ("fd00::2", "[fd00::2]:4914"),
            (":9", ":9"),
        ] {
            assert_eq!(with_port(typed, 4914), full);
        }
    }
}
