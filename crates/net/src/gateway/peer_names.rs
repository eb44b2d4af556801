//! Where peers with names are, found out for ever: a gateway may start before the network does.
//!
//! # Promises
//! - Neither the start nor the loop waits for a name.
//! - A name that cannot be resolved is tried again, ever more rarely, at least once in
//!   [`PAUSE_MAX`]; each try is a line of the log.
//! - One that was resolved is looked at again now and then: the peer may have moved.

use super::config::PeerSettings;
use crate::wait::Waker;
use fulmar_proto::splice::Host;
use fulmar_proto::units::{Duration, format_duration};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

/// After the first failure, and the most after further ones.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Between looks at a name that was resolved.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// Where a peer is, as the carrier's socket calls it; of a socket for both families, IPv4 hosts have mapped
/// addresses.
pub(super) fn usable(
    found: impl Iterator<Item = SocketAddr>,
    v6: bool,
) -> Result<SocketAddr, io::Error> {
    let mut any = false;
    let mut found = found.inspect(|_| any = true);
    let usable = found.find(|found| v6 || found.is_ipv4());
    let usable = usable.ok_or_else(|| {
        io::Error::other(if any {
            "it has no IPv4 address, and the gateway listens on IPv4 only; write listen = \":4914\""
        } else {
            "no address belongs to that name"
        })
    })?;
    Ok(match usable.ip() {
        IpAddr::V4(v4) if v6 => (v4.to_ipv6_mapped(), usable.port()).into(),
        _ => usable,
    })
}

/// A name that is looked for.
#[derive(Debug)]
struct Sought {
    peer: usize,
    name: String,
    address: String,
    known: Option<SocketAddr>,
    pause: Duration,
    /// Until the next look, less what passed since.
    left: Duration,
}

impl Sought {
    /// Looks; where the peer is, if that is news.
    fn look(&mut self, v6: bool) -> Option<SocketAddr> {
        let found = self.address.to_socket_addrs();
        match found.and_then(|found| usable(found, v6)) {
            Ok(address) => {
                self.pause = PAUSE_FIRST;
                self.left = LOOK_AGAIN;
                let is_news = self.known.replace(address) != Some(address);
                is_news.then_some(address)
            }
            Err(error) => {
                self.left = self.pause;
                let again_in = format_duration(self.pause);
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                let (peer, address) = (&self.name, &self.address);
                tracing::warn!(event = "peer_unresolved", peer, address, %error, again_in);
                None
            }
        }
    }
}

/// The front of the thread that looks. Dropped, it ends.
#[derive(Debug)]
pub(super) struct PeerNames {
    news: Receiver<(usize, SocketAddr)>,
    _alive: Sender<()>,
}

impl PeerNames {
    /// Looks for those of `peers` that have names; each news calls `waker`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(peers: &[PeerSettings], v6: bool, waker: Waker) -> io::Result<Self> {
        let sought = peers.iter().enumerate().filter_map(|(peer, settings)| {
            let address = settings.address.as_ref()?;
            matches!(address.host, Host::Name(_)).then(|| Sought {
                peer,
                name: settings.name.clone(),
                address: address.to_string(),
                known: None,
                pause: PAUSE_FIRST,
                left: Duration::ZERO,
            })
        });
        let sought: Vec<Sought> = sought.collect();
        let (tell, news) = channel();
        let (alive, gone) = channel();
        if !sought.is_empty() {
            thread::Builder::new()
                .name("peers".to_owned())
                .spawn(move || look_for_ever(sought, v6, &tell, &gone, &waker))?;
        }
        Ok(Self {
            news,
            _alive: alive,
        })
    }

    /// A peer, and where it is now.
    pub(super) fn poll(&self) -> Option<(usize, SocketAddr)> {
        self.news.try_recv().ok()
    }
}

fn look_for_ever(
    mut all: Vec<Sought>,
    v6: bool,
    tell: &Sender<(usize, SocketAddr)>,
    gone: &Receiver<()>,
    waker: &Waker,
) {
    loop {
        for sought in all.iter_mut().filter(|sought| sought.left.is_zero()) {
            if let Some(address) = sought.look(v6)
                && (tell.send((sought.peer, address)).is_err() || waker.wake().is_err())
            {
                return;
            }
        }
        let next = all.iter().map(|sought| sought.left).min();
        let pause = next.unwrap_or(PAUSE_MAX);
        if gone.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        for sought in &mut all {
            sought.left = sought.left.saturating_sub(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::waker;

    fn seeking(address: &str) -> Sought {
        Sought {
            peer: 0,
            name: "ground".to_owned(),
            address: address.to_owned(),
            known: None,
            pause: PAUSE_FIRST,
            left: Duration::ZERO,
        }
    }

    #[test]
    fn a_name_without_an_address_is_tried_for_ever_and_ever_more_rarely() {
        // RFC 2606: nobody has it.
        let mut sought = seeking("no-such-host.invalid:4914");
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(sought.look(true), None);
            pauses.push(sought.left.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn an_address_is_news_once_and_has_the_sockets_family() {
        let mut sought = seeking("127.0.0.1:4914");
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:4914".parse().unwrap();
        assert_eq!(sought.look(true), Some(mapped));
        assert_eq!(sought.left, LOOK_AGAIN);
        assert_eq!(sought.look(true), None);
        let v4 = "127.0.0.1:4914".parse().unwrap();
        assert_eq!(sought.look(false), Some(v4));
        assert!(usable(["[::1]:1".parse().unwrap()].into_iter(), false).is_err());
    }

    #[test]
    fn the_thread_ends_with_its_front() {
        let (waker, _wake_up) = waker().unwrap();
        let (tell, news) = channel();
        let (alive, gone) = channel();
        let all = vec![seeking("127.0.0.1:4914")];
        let thread = thread::spawn(move || look_for_ever(all, true, &tell, &gone, &waker));
        assert_eq!(news.recv().map(|(peer, _)| peer), Ok(0));
        drop(alive);
        thread.join().unwrap();
    }
}
