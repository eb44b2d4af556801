//! Whether the gateways at the other end answer, and would take a call of this one.

use super::finding::{Finding, chain};
use crate::clock::Clock;
use crate::entropy;
use crate::gateway::config::{GatewayConfig, PeerSettings, SecurityKind};
use crate::gateway::{key_question, path_missing, peer_address};
use crate::session::{KeyAnswer, SESSION_VERSION, version_answer, version_question};
use crate::wait::{Interest, wait};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// The time between two questions: a lossy link needs several, and a gateway answers ten a second.
const EVERY: Duration = Duration::from_millis(250);
const TRIES: u32 = 12;
/// The wait after the last question, whose answer may cross two satellites.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// The room for an answer. It has 12 octets or, about keys, 28; a longer datagram is no answer.
const ROOM: usize = 64;

/// The outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard<T> {
    /// An answer, and the time that it took.
    Answer(T, Duration),
    /// Its host says that nobody listens.
    Refused,
    /// Nothing came.
    Silence,
}

/// One finding for each further path whose device or address is missing.
pub(super) fn paths(config: &GatewayConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, peer) in config.peers.iter().enumerate() {
        let home = peer_address(config, index).ok().flatten();
        for path in &peer.paths {
            let Some(remote) = path.address.or(home) else {
                continue;
            };
            let check = format!("peer {} {}", peer.name, path.in_words());
            let missing = match path_missing(path, remote) {
                Ok(None) => continue,
                Ok(Some(missing)) => missing.to_string(),
                Err(error) => error.to_string(),
            };
            findings.push(Finding::poor(
                check,
                missing,
                "plug the device in or bring it up (ip link set DEVICE up), or correct device or local in [[peer.path]]; \
                 until then the path waits, and the others carry on",
            ));
        }
    }
    findings
}

/// One finding for each peer.
pub(super) fn reachable(config: &GatewayConfig) -> Vec<Finding> {
    let judged = config.peers.iter().enumerate().map(|(index, peer)| {
        let check = format!("peer {}", peer.name);
        match peer_address(config, index) {
            Ok(Some(address)) => match ask_version(address) {
                Ok(Heard::Answer(SESSION_VERSION, after)) => {
                    keys_fit(config, index, check, address, after)
                }
                Ok(heard) => judge(check, address, heard),
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

/// The finding about a peer that does not answer in our version.
fn judge(check: String, address: SocketAddr, heard: Heard<u8>) -> Finding {
    match heard {
        Heard::Answer(theirs, _) => Finding::bad(
            check,
            format!(
                "{address} speaks version {theirs} of the session, this fulmar {SESSION_VERSION}"
            ),
            "install the same version of fulmar at both ends",
        ),
        Heard::Refused => Finding::bad(
            check,
            format!("{address} is there, but nobody listens on that UDP port"),
            "start the gateway there, or correct the port",
        ),
        Heard::Silence => Finding::bad(
            check,
            format!("{address} does not answer {TRIES} questions"),
            "see that the gateway runs there, that its UDP port is open in every firewall on the way, \
             and that the address is right",
        ),
    }
}

/// The finding whether the peer at place `index`, which answers, would take a call of this gateway.
fn keys_fit(
    config: &GatewayConfig,
    index: usize,
    check: String,
    address: SocketAddr,
    after: Duration,
) -> Finding {
    let question = match key_question(config, index) {
        Ok(Some(question)) => question,
        Ok(None) => {
            return Finding::bad(
                check,
                format!("{address} answers, but no handshake can be begun with its public key"),
                "copy its public_key again, from `fulmar keygen --public FILE` there",
            );
        }
        Err(error) => {
            return Finding::bad(
                check,
                format!(
                    "{address} answers, but our keys cannot be used: {}",
                    chain(&error)
                ),
                "fulmar gateway --check -c FILE says more; fulmar keygen makes keys",
            );
        }
    };
    let heard = exchange(
        address,
        |_| question.octets().to_vec(),
        |octets, _| Some((0, question.answer(octets)?)),
    );
    let answer = match heard {
        Ok(Heard::Answer(answer, _)) => Some(answer),
        _ => None,
    };
    judge_keys(check, address, after, (config, index), answer)
}

fn judge_keys(
    check: String,
    address: SocketAddr,
    after: Duration,
    (config, index): (&GatewayConfig, usize),
    answer: Option<KeyAnswer>,
) -> Finding {
    let millis = after.as_secs_f64() * 1e3;
    let there = format!("{address} answers after {millis:.1} ms");
    match answer {
        Some(KeyAnswer::Agree) => {
            let keys = match &config.security {
                SecurityKind::None => "knows us; nothing is protected",
                SecurityKind::Noise {
                    preset_key_file: Some(_),
                    ..
                } => "has our keys, but for the preset key, which a handshake alone shows",
                SecurityKind::Noise { .. } | SecurityKind::Preset { .. } => "has our keys",
            };
            Finding::good(check, format!("{there} and {keys}"))
        }
        Some(KeyAnswer::Differ(hint)) => {
            let hint = hint.between("this end", &format!("`{}`", config.peer_name(index)));
            let (found, remedy) = hint.split_once(": ").unwrap_or((&hint, "see its log"));
            Finding::bad(
                check,
                format!("{there}, but would not take our call: {found}"),
                remedy,
            )
        }
        None => Finding::poor(
            check,
            format!("{there}, and says nothing about our keys"),
            "update fulmar there; its log says whether it refuses our handshakes",
        ),
    }
}

fn ask_version(address: SocketAddr) -> io::Result<Heard<u8>> {
    // There is room above it for every try.
    let first = u32::try_from(entropy::seed()? >> 33).unwrap_or(0);
    exchange(
        address,
        |attempt| version_question(first + attempt).to_vec(),
        |octets, attempt| {
            let mut asked = 0..=attempt;
            asked.find_map(|asked| Some((asked, version_answer(octets, first + asked)?)))
        },
    )
}

/// Sends `question` again and again, until `answer` recognises an answer and tells which question it is for.
fn exchange<T>(
    address: SocketAddr,
    question: impl Fn(u32) -> Vec<u8>,
    answer: impl Fn(&[u8], u32) -> Option<(u32, T)>,
) -> io::Result<Heard<T>> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    let clock = Clock::start();
    let begun = clock.now();
    for attempt in 0..TRIES {
        match socket.send(&question(attempt)) {
            Ok(_) => {}
            Err(error) if is_refusal(&error) => return Ok(Heard::Refused),
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
                Err(error) if is_refusal(&error) => return Ok(Heard::Refused),
                Err(error) => return Err(error),
            };
            let octets = octets.get(..len).unwrap_or_default();
            if let Some((asked, found)) = answer(octets, attempt) {
                let after = clock.now().saturating_since(begun + EVERY * asked);
                return Ok(Heard::Answer(found, after));
            }
        }
    }
    Ok(Heard::Silence)
}

/// Whether the other host says that nobody listens.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;

    #[test]
    fn a_closed_port_is_told_from_silence() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        drop(taken);
        assert_eq!(ask_version(address).unwrap(), Heard::Refused);
    }

    #[test]
    fn a_path_whose_device_is_absent_is_found_and_one_without_a_device_is_not() {
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n\
                    [[peer]]\nname = \"b\"\naddress = \"127.0.0.1:4914\"\nrate = \"1mbit\"\n\
                    [[peer.path]]\ndevice = \"no-such-dev\"\n[[peer.path]]\naddress = \"127.0.0.2:4914\"\n\
                    [egress]\nallow = [\"10.0.0.1:80\"]\n";
        let config = GatewayConfig::read("a.toml", text).unwrap();
        let findings = paths(&config);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let finding = &findings[0];
        assert_eq!(finding.verdict, FindingVerdict::Poor);
        assert!(finding.check.starts_with("peer b "), "{}", finding.check);
        assert!(
            finding.found.contains("no device no-such-dev"),
            "{}",
            finding.found
        );
    }

    #[test]
    fn another_version_is_bad_and_names_both() {
        let address = "192.0.2.1:4914".parse().unwrap();
        let heard = Heard::Answer(9, Duration::ZERO);
        let finding = judge("peer sat".to_owned(), address, heard);
        assert_eq!(finding.verdict, FindingVerdict::Bad);
        assert!(finding.found.contains("version 9") && finding.found.ends_with("fulmar 1"));
    }
}
