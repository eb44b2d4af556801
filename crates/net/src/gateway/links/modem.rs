//! A modem that speaks DLEP (RFC 8175): discovery on a device, and the connection to what answered there.

use super::heard::LinkWord;
use super::lack::SourceLack;
use crate::gateway::sockets::{Poller, Token, interfaces_up};
use fulmar_proto::dlep::wire::{DLEP_GROUP, DLEP_HOPS, DLEP_PORT};
use fulmar_proto::dlep::{DlepAction, DlepConfig, DlepRouter};
use fulmar_proto::units::{Duration, Instant};
use nix::errno::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};

/// Datagrams, and reads of the connection, in one turn; what is left rings again or waits for the next turn.
const READS_PER_TURN: usize = 16;
const READ_BYTES: usize = 16_384;
/// Octets that wait for the modem to read, at most; one that does not read is left.
const UNSENT_MAX: usize = 65_536;

/// The connection to a modem.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    is_made: bool,
    unsent: Vec<u8>,
    /// Whether it ends once that has left.
    ends: bool,
}

/// The time that octets sent to a modem may stay unanswered by its machine. Heartbeats leave every two seconds.
const UNANSWERED_MOST: Duration = Duration::from_secs(30);
/// Discoveries without an answer before that is said.
const UNANSWERED_SAID: u32 = 3;
/// Destinations that are named where one of them has to be chosen.
const DESTINATIONS_SAID: usize = 4;

/// The place of a device: its number, which is another after it was unplugged, and the address to which offers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DevicePlace {
    index: u32,
    address: Option<Ipv4Addr>,
}

/// The router's side of DLEP on a device.
#[derive(Debug)]
pub(super) struct Modem {
    device: String,
    /// The socket for discoveries, and the place that it is bound to; none while the device is not there.
    discovery: Option<(UdpSocket, DevicePlace)>,
    connection: Option<Connection>,
    router: DlepRouter,
}

fn ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The place where a device is now; `None`: there is no such device.
fn place_of(device: &str) -> io::Result<Option<DevicePlace>> {
    let index = match nix::net::if_::if_nametoindex(device) {
        Ok(index) => index,
        Err(Errno::ENODEV | Errno::ENXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let up = interfaces_up()?;
    let found = up.iter().find(|one| one.name == device);
    let mut addresses = found.into_iter().flat_map(|one| &one.addresses);
    let address = addresses.find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    Ok(Some(DevicePlace { index, address }))
}

fn open_discovery(device: &str, place: DevicePlace) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind_device(Some(device.as_bytes()))?;
    socket.set_multicast_ttl_v4(u32::from(DLEP_HOPS))?;
    socket.set_multicast_loop_v4(false)?;
    let from = place.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Modem {
    /// Opens the socket for discoveries on a device. One that is not there may come later.
    ///
    /// # Errors
    /// This user may not bind to the device, or the system has no socket.
    pub(super) fn open(device: &str, config: DlepConfig) -> io::Result<Self> {
        let mut modem = Self {
            device: device.to_owned(),
            discovery: None,
            connection: None,
            router: DlepRouter::new(config),
        };
        modem.follow_device()?;
        Ok(modem)
    }

    /// Opens the socket for discoveries anew where the device has come, or is another, or has another address. Returns whether it
    /// did.
    fn follow_device(&mut self) -> io::Result<bool> {
        let place = place_of(&self.device)?;
        if place == self.discovery.as_ref().map(|(_, place)| *place) {
            return Ok(false);
        }
        // The old one leads nowhere, whatever comes of the new one.
        self.discovery = None;
        if let Some(place) = place {
            match open_discovery(&self.device, place) {
                Ok(socket) => self.discovery = Some((socket, place)),
                // It has gone since it was looked at.
                Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.discovery.is_some())
    }

    /// Lets offers wake the loop.
    pub(super) fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        self.discovery
            .as_ref()
            .map_or(Ok(()), |(socket, _)| poller.watch_level(socket, token))
    }

    /// The reason why nothing is told, if one is known.
    pub(super) fn lack(&self) -> Option<SourceLack> {
        if self.router.is_ambiguous() {
            let first = self.router.destinations().take(DESTINATIONS_SAID);
            let first: Vec<String> = first.map(|mac| mac.to_string()).collect();
            return Some(SourceLack::Destinations {
                count: self.router.destinations().count(),
                first: first.join(", "),
            });
        }
        if self.router.is_in_session() {
            None
        } else if self.discovery.is_none() {
            Some(SourceLack::Device(self.device.clone()))
        } else {
            let is_long = self.router.unanswered() >= UNANSWERED_SAID;
            is_long.then(|| SourceLack::Modem(self.device.clone()))
        }
    }

    pub(super) const fn router(&self) -> &DlepRouter {
        &self.router
    }

    /// The time at which something is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.router.next_deadline().map(|deadline| deadline.at)
    }

    /// The link as it is told now, if that has changed; it holds for so long.
    pub(super) fn poll_word(&mut self, holds: Duration) -> Option<LinkWord> {
        let news = self.router.poll_news()?;
        Some(news.map_or(LinkWord::Gone, |news| LinkWord::News(news, Some(holds))))
    }

    /// Takes what came, does what is due, and sends what follows from both.
    pub(super) fn turn(&mut self, now: Instant, poller: &Poller, token: Token) {
        self.hear_offers(now);
        self.hear_modem(now);
        if self.next_at().is_some_and(|at| at <= now) {
            self.router.handle_deadline(now);
        }
        while let Some(action) = self.router.poll_action() {
            if let Err(error) = self.act(action, poller, token) {
                tracing::info!(event = "modem_unreached", device = self.device, %error);
                self.connection = None;
                self.router.handle_closed(now);
            }
        }
        self.write(now);
    }

    fn hear_offers(&mut self, now: Instant) {
        let mut octets = [0; 2_048];
        for _ in 0..READS_PER_TURN {
            // An error is of an earlier discovery that nobody took.
            let Some(Ok((len, from))) =
                (self.discovery.as_ref()).map(|(socket, _)| socket.recv_from(&mut octets))
            else {
                return;
            };
            let octets = octets.get(..len).unwrap_or_default();
            self.router.handle_datagram(now, from, octets);
        }
    }

    fn hear_modem(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if !connection.is_made {
            match connection.stream.take_error() {
                Ok(None) if connection.stream.peer_addr().is_ok() => connection.is_made = true,
                // It is being made.
                Ok(None) => return,
                Ok(Some(_)) | Err(_) => {
                    self.connection = None;
                    return self.router.handle_closed(now);
                }
            }
            self.router.handle_connected(now);
        }
        let mut octets = [0; READ_BYTES];
        // Edges are watched: all that is there has to be read, as far as the turn goes; a heartbeat later the rest.
        for _ in 0..READS_PER_TURN {
            let Some(connection) = &mut self.connection else {
                return;
            };
            match ready(connection.stream.read(&mut octets)) {
                Ok(Some(0)) | Err(_) => {
                    self.connection = None;
                    return self.router.handle_closed(now);
                }
                Ok(Some(len)) => {
                    let octets = octets.get(..len).unwrap_or_default();
                    self.router.handle_octets(now, octets);
                }
                Ok(None) => return,
            }
        }
    }

    fn act(&mut self, action: DlepAction, poller: &Poller, token: Token) -> io::Result<()> {
        match action {
            DlepAction::Discover(octets) => {
                if self.follow_device()? {
                    self.watch(poller, token)?;
                }
                if let Some((socket, _)) = &self.discovery
                    && let Err(error) = socket.send_to(&octets, (DLEP_GROUP, DLEP_PORT))
                {
                    // The device may be down, or have no way: then nobody is there who could answer, and the lack of one is said.
                    tracing::debug!(event = "modem_discovery_unsent", device = self.device, %error);
                }
            }
            DlepAction::Connect(to) => {
                let socket =
                    Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
                socket.bind_device(Some(self.device.as_bytes()))?;
                if to.is_ipv4() {
                    socket.set_ttl_v4(u32::from(DLEP_HOPS))?;
                } else {
                    socket.set_unicast_hops_v6(u32::from(DLEP_HOPS))?;
                }
                socket.set_tcp_user_timeout(Some(UNANSWERED_MOST))?;
                socket.set_nonblocking(true)?;
                match socket.connect(&SockAddr::from(to)) {
                    Err(error)
                        if error.raw_os_error()
                            != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
                    {
                        return Err(error);
                    }
                    _ => {}
                }
                let stream = TcpStream::from(socket);
                poller.watch_edges(&stream, token)?;
                self.connection = Some(Connection {
                    stream,
                    is_made: false,
                    unsent: Vec::new(),
                    ends: false,
                });
            }
            DlepAction::Send(octets) => {
                let Some(connection) = &mut self.connection else {
                    return Ok(());
                };
                if connection.unsent.len() + octets.len() > UNSENT_MAX {
                    return Err(io::Error::other("the modem does not read what it is sent"));
                }
                connection.unsent.extend(octets);
            }
            DlepAction::Close => {
                if let Some(connection) = &mut self.connection {
                    connection.ends = true;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, now: Instant) {
        let Some(connection) = self.connection.as_mut().filter(|one| one.is_made) else {
            if self.connection.as_ref().is_some_and(|one| one.ends) {
                self.connection = None;
            }
            return;
        };
        while !connection.unsent.is_empty() {
            match ready(connection.stream.write(&connection.unsent)) {
                Ok(Some(len)) => drop(connection.unsent.drain(..len)),
                Ok(None) => break,
                Err(_) => {
                    self.connection = None;
                    return self.router.handle_closed(now);
                }
            }
        }
        if connection.ends {
            self.connection = None;
        }
    }
}
