//! An exit's TCP connection being made: addresses tried one after the other, each with a head
//! start, and the first that answers wins (RFC 8305, section 5).

use super::permission::Permitted;
use crate::gateway::sockets::{Poller, Token, kernel};
use fulmar_proto::splice::RefuseCode;
use fulmar_proto::units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};

/// The recommended "Connection Attempt Delay" (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);
/// Addresses tried for one name.
const ADDRESSES_MAX: usize = 8;

/// One destination's attempts.
#[derive(Debug)]
pub(in crate::gateway) struct Connecting {
    token: Token,
    untried: VecDeque<Permitted>,
    attempts: Vec<TcpStream>,
    next_at: Instant,
    give_up_at: Instant,
    failure: RefuseCode,
}

/// The state of connecting.
#[derive(Debug)]
pub(in crate::gateway) enum Progress {
    /// Call again when a socket is ready or the deadline has come.
    Wait,
    /// Connected.
    Done(TcpStream),
    /// None of the addresses answered.
    Failed(RefuseCode),
}

/// The families in turn, beginning with the first address's (RFC 8305, section 4).
fn interleave(addresses: &[Permitted]) -> VecDeque<Permitted> {
    let first_is_v6 = addresses.first().is_some_and(|first| first.is_ipv6());
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .iter()
        .partition::<Vec<Permitted>, _>(|address| address.is_ipv6() == first_is_v6);
    let mut second = second.into_iter();
    let mut mixed = VecDeque::new();
    for address in first {
        mixed.push_back(address);
        mixed.extend(second.next());
    }
    mixed.extend(second);
    mixed.truncate(ADDRESSES_MAX);
    mixed
}

pub(super) fn code_of(error: &io::Error) -> RefuseCode {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => RefuseCode::Refused,
        ErrorKind::TimedOut => RefuseCode::Timeout,
        ErrorKind::PermissionDenied => RefuseCode::NotAllowed,
        // EMFILE and ENFILE have no kind of their own.
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => RefuseCode::TooMany,
        _ => RefuseCode::Unreachable,
    }
}

fn begin(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    // From its first moment, so that the destination never sees an end that no client sent.
    socket.set_linger(Some(Duration::ZERO))?;
    match socket.connect(&address.into()) {
        Err(error)
            if error.kind() != ErrorKind::WouldBlock
                && error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Err(error)
        }
        _ => Ok(socket.into()),
    }
}

impl Connecting {
    /// Will connect to the first of `addresses` that answers before `timeout` is over. Its sockets
    /// are watched under `token`.
    pub(in crate::gateway) fn new(
        now: Instant,
        token: Token,
        addresses: &[Permitted],
        timeout: Duration,
    ) -> Self {
        Self {
            token,
            untried: interleave(addresses),
            attempts: Vec::new(),
            next_at: now,
            give_up_at: now + timeout,
            failure: RefuseCode::Unreachable,
        }
    }

    pub(in crate::gateway) fn next_deadline(&self) -> Instant {
        if self.untried.is_empty() {
            self.give_up_at
        } else {
            self.give_up_at.min(self.next_at)
        }
    }

    /// Looks at every attempt and begins the next if it is time.
    pub(in crate::gateway) fn progress(&mut self, now: Instant, poller: &Poller) -> Progress {
        for index in (0..self.attempts.len()).rev() {
            let stream = &self.attempts[index];
            match (stream.take_error(), stream.peer_addr()) {
                (Ok(None), Ok(_)) => return Progress::Done(self.attempts.swap_remove(index)),
                (Ok(None), Err(_)) => {}
                (Ok(Some(error)) | Err(error), _) => {
                    self.failure = code_of(&error);
                    self.attempts.swap_remove(index);
                    // The next need not wait for one that has failed.
                    self.next_at = now;
                }
            }
        }
        while now >= self.next_at && now < self.give_up_at {
            let Some(address) = self.untried.pop_front() else {
                break;
            };
            let begun = address.address().and_then(begin).and_then(|stream| {
                kernel::prepare(&stream)?;
                poller.watch_edges(&stream, self.token)?;
                Ok(stream)
            });
            match begun {
                Ok(stream) => {
                    self.attempts.push(stream);
                    self.next_at = now + HEAD_START;
                }
                Err(error) => self.failure = code_of(&error),
            }
        }
        if now >= self.give_up_at {
            return Progress::Failed(RefuseCode::Timeout);
        }
        if self.attempts.is_empty() && self.untried.is_empty() {
            return Progress::Failed(self.failure);
        }
        Progress::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_beginning_with_the_preferred() {
        let addresses: Vec<Permitted> = [
            "[::1]:1",
            "[::2]:1",
            "10.0.0.1:1",
            "10.0.0.2:1",
            "10.0.0.3:1",
        ]
        .iter()
        .map(|text| Permitted::even_own(text.parse().unwrap()))
        .collect();
        let order: Vec<String> = interleave(&addresses)
            .iter()
            .map(|permitted| permitted.address().unwrap().to_string())
            .collect();
        assert_eq!(
            order,
            [
                "[::1]:1",
                "10.0.0.1:1",
                "[::2]:1",
                "10.0.0.2:1",
                "10.0.0.3:1"
            ]
        );
    }

    #[test]
    fn a_port_where_nobody_listens_is_refused_and_the_next_address_tried() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let there = listener.local_addr().unwrap();
        let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let nobody = closed.local_addr().unwrap();
        drop(closed);
        let poller = Poller::new().unwrap();
        let now = Instant::START;
        let timeout = Duration::from_secs(5);
        let [nobody, there_too] = [nobody, there].map(Permitted::even_own);
        let mut one = Connecting::new(now, Token(1), &[nobody], timeout);
        let Progress::Failed(RefuseCode::Refused) = settle(&mut one, &poller) else {
            panic!("it must be refused")
        };
        let mut two = Connecting::new(now, Token(1), &[nobody, there_too], timeout);
        let Progress::Done(stream) = settle(&mut two, &poller) else {
            panic!("the second answers")
        };
        assert_eq!(stream.peer_addr().unwrap(), there);
    }

    #[test]
    fn a_connection_that_comes_to_nothing_is_reset() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let poller = Poller::new().unwrap();
        let there = [Permitted::even_own(listener.local_addr().unwrap())];
        let timeout = Duration::from_secs(5);
        let mut one = Connecting::new(Instant::START, Token(1), &there, timeout);
        let Progress::Done(stream) = settle(&mut one, &poller) else {
            panic!("somebody listens")
        };
        let mut server = listener.accept().unwrap().0;
        drop(stream);
        let told = io::Read::read(&mut server, &mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn an_address_that_has_become_our_own_since_it_was_checked_is_not_connected_to() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = Permitted::of_others(listener.local_addr().unwrap());
        let poller = Poller::new().unwrap();
        let timeout = Duration::from_secs(5);
        let mut one = Connecting::new(Instant::START, Token(1), &[own], timeout);
        let ended = settle(&mut one, &poller);
        assert!(
            matches!(ended, Progress::Failed(RefuseCode::NotAllowed)),
            "{ended:?}"
        );
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody came");
    }

    /// Loopback answers at once; a bounded number of looks makes a hang a failure.
    fn settle(connecting: &mut Connecting, poller: &Poller) -> Progress {
        for _ in 0..1_000 {
            match connecting.progress(Instant::START, poller) {
                Progress::Wait => std::thread::yield_now(),
                end => return end,
            }
        }
        Progress::Wait
    }
}
