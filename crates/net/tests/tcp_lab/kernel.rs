//! The other end: sockets of the Linux kernel in the TUN device's network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Turns a hang into a failure; far beyond what any transfer here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// The kernel's side: a network namespace, in which sockets are opened.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(super) namespace: String,
    pub(super) address: IpAddr,
    pub(super) ours: IpAddr,
}

/// The options that the kernel's TCP asks for and agrees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) window_scaling: bool,
}

impl Features {
    pub(crate) const ALL: Self = Self {
        sack: true,
        timestamps: true,
        window_scaling: true,
    };

    /// All combinations: with and without each option.
    pub(crate) fn combinations() -> impl Iterator<Item = Self> {
        (0..8_u8).map(|bits| Self {
            sack: bits & 1 != 0,
            timestamps: bits & 2 != 0,
            window_scaling: bits & 4 != 0,
        })
    }
}

impl Kernel {
    /// Does `work` on a thread inside the namespace. Sockets opened there stay there.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = Path::new("/run/netns").join(&self.namespace);
        let handle = File::open(path).expect("the namespace is there");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("root may enter");
                work()
            });
            inside.join().expect("the work inside succeeds")
        })
    }

    /// Sets the options from the next connection on.
    pub(crate) fn set_features(&self, features: Features) {
        let settings = [
            ("sack", features.sack),
            ("timestamps", features.timestamps),
            ("window_scaling", features.window_scaling),
        ];
        self.within(|| {
            for (name, on) in settings {
                let path = format!("/proc/sys/net/ipv4/tcp_{name}");
                std::fs::write(path, if on { "1" } else { "0" }).expect("root may set it");
            }
        });
    }

    /// Segments that the kernel dropped for their checksum.
    pub(crate) fn checksum_errors(&self) -> u64 {
        let table = self.within(|| std::fs::read_to_string("/proc/thread-self/net/snmp"));
        let table = table.expect("the kernel counts");
        let mut rows = table.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
        let named = names.split_whitespace().zip(values.split_whitespace());
        let mut found = named.filter(|(name, _)| *name == "InCsumErrors");
        let (_, value) = found.next().expect("the counter of RFC 4022");
        value.parse().expect("a number")
    }

    fn socket(&self, receive_buffer: Option<usize>) -> Socket {
        let domain = Domain::for_address(SocketAddr::new(self.address, 0));
        let socket = self.within(|| Socket::new(domain, Type::STREAM, Some(Protocol::TCP)));
        let socket = socket.expect("a socket");
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes).expect("a small buffer");
        }
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        socket.set_write_timeout(Some(PATIENCE)).expect("a time");
        socket
    }

    /// Listens at `port`; accepting fails rather than hang.
    pub(crate) fn listen(&self, port: u16, receive_buffer: Option<usize>) -> TcpListener {
        let socket = self.socket(receive_buffer);
        let at = SocketAddr::new(self.address, port);
        socket.bind(&at.into()).expect("a free port");
        socket.listen(1).expect("a listener");
        socket.into()
    }

    /// Connects to `port` of ours.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn connect(
        &self,
        port: u16,
        receive_buffer: Option<usize>,
    ) -> io::Result<TcpStream> {
        let socket = self.socket(receive_buffer);
        socket.connect_timeout(&SocketAddr::new(self.ours, port).into(), PATIENCE)?;
        Ok(socket.into())
    }
}

/// Takes a connection that came to `listener`, with its time limits.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// Writes `octets` and the end while reading to the other side's end; returns the octets read.
pub(crate) fn exchange(stream: &TcpStream, octets: &[u8]) -> Vec<u8> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write_all(stream, octets);
            stream.shutdown(Shutdown::Write).expect("still open");
        });
        read_all(stream)
    })
}

pub(crate) fn write_all(mut stream: &TcpStream, octets: &[u8]) {
    stream.write_all(octets).expect("the connection holds");
}

/// Reads to the end.
pub(crate) fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut octets = Vec::new();
    stream
        .read_to_end(&mut octets)
        .expect("the connection ends in order");
    octets
}
