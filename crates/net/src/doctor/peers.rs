//! Whether the gateways at the other end answer.

use super::finding::{Finding, chain};
use crate::clock::Clock;
use crate::entropy;
use crate::gateway::config::{GatewayConfig, PeerSettings};
use crate::gateway::peer_address;
use crate::session::{SESSION_VERSION, version_answer, version_question};
use crate::wait::{Interest, wait};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// A lossy link is asked again and again; a gateway answers ten a second.
const EVERY: Duration = Duration::from_millis(250);
const TRIES: u32 = 12;
/// The last question may cross two satellites.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// An answer is 12 octets; a longer datagram is none.
const ROOM: usize = 64;

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It speaks this version; the answer took so long.
    Version(u8, Duration),
    /// Its host says that nobody listens.
    Refused,
    /// Nothing came.
    Silence,
}

/// One finding for each peer.
pub(super) fn reachable(config: &GatewayConfig) -> Vec<Finding> {
    let judged = config.peers.iter().enumerate().map(|(index, peer)| {
        let check = format!("peer {}", peer.name);
        match peer_address(config, index) {
            Ok(Some(address)) => match ask(address) {
                Ok(answer) => judge(check, address, answer),
                Err(error) => Finding::bad(
                    check,
                    format!("{address}: {error}"),
                    "give this machine a route to it (ip route get), or correct its address",
                ),
            },
            Ok(None) => calls_us(check, peer),
            Err(error) => Finding::bad(
                check,
                chain(&error),
                "correct its address in [[peer]], or look at the name server",
            ),
        }
    });
    judged.collect()
}

fn calls_us(check: String, peer: &PeerSettings) -> Finding {
    let found = format!("{} has no address: it calls us", peer.name);
    Finding::good(check, found)
}

fn judge(check: String, address: SocketAddr, answer: Answer) -> Finding {
    match answer {
        Answer::Version(SESSION_VERSION, after) => {
            let millis = after.as_secs_f64() * 1e3;
            Finding::good(check, format!("{address} answers after {millis:.1} ms"))
        }
        Answer::Version(theirs, _) => Finding::bad(
            check,
            format!(
                "{address} speaks version {theirs} of the session, this fulmar {SESSION_VERSION}"
            ),
            "install the same version of fulmar at both ends",
        ),
        Answer::Refused => Finding::bad(
            check,
            format!("{address} is there, but nobody listens on that UDP port"),
            "start the gateway there, or correct the port",
        ),
        Answer::Silence => Finding::bad(
            check,
            format!("{address} does not answer {TRIES} questions"),
            "see that the gateway runs there, that its UDP port is open in every firewall on the way, \
             and that the address is right",
        ),
    }
}

fn ask(address: SocketAddr) -> io::Result<Answer> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    // Room above it for every try.
    let first = u32::try_from(entropy::seed()? >> 33).unwrap_or(0);
    let clock = Clock::start();
    let begun = clock.now();
    for attempt in 0..TRIES {
        match socket.send(&version_question(first + attempt)) {
            Ok(_) => {}
            Err(error) if is_refusal(&error) => return Ok(Answer::Refused),
            Err(error) => return Err(error),
        }
        let last = attempt + 1 == TRIES;
        let until = begun + EVERY * (attempt + 1) + if last { PATIENCE } else { Duration::ZERO };
        loop {
            let left = until.saturating_since(clock.now());
            if left.is_zero() {
                break;
            }
            wait(
                &[(socket.as_fd(), Interest::Readable)],
                Some(left),
                &mut Vec::new(),
            )?;
            let mut octets = [0; ROOM];
            let heard = socket.recv(&mut octets);
            let len = match heard {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) if is_refusal(&error) => return Ok(Answer::Refused),
                Err(error) => return Err(error),
            };
            let octets = octets.get(..len).unwrap_or_default();
            let answered = (0..=attempt)
                .find_map(|asked| Some((asked, version_answer(octets, first + asked)?)));
            if let Some((asked, version)) = answered {
                let after = clock.now().saturating_since(begun + EVERY * asked);
                return Ok(Answer::Version(version, after));
            }
        }
    }
    Ok(Answer::Silence)
}

/// Whether the other host says that nobody listens.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_closed_port_is_told_from_silence() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        drop(taken);
        assert_eq!(ask(address).unwrap(), Answer::Refused);
    }

    #[test]
    fn another_version_is_bad_and_names_both() {
        let address = "192.0.2.1:4914".parse().unwrap();
        let answer = Answer::Version(9, Duration::ZERO);
        let finding = judge("peer sat".to_owned(), address, answer);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.found.contains("version 9") && finding.found.ends_with("fulmar 1"));
    }
}
