//! Questions to a running gateway's HTTP server (`fulmar top`).
//!
//! # Promises
//! - An answer takes bounded time and memory, whatever the server is, whoever resolves its name, and however many
//!   addresses it has.
//! - A server that has no place for one more client is asked again within the same time: a health check is one client
//!   among many.

use crate::clock::Clock;
use crate::wait::wait;
use core::fmt;
use core::str::FromStr;
use fulmar_proto::units::Instant;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The port of the examples' `[metrics]`.
pub const DEFAULT_PORT: u16 = 9490;

/// The longest time for connecting and an answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a busy server is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// The longest answer: one about 256 peers with eight classes each is a fifth of it.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The status of an answer when there is no place: nothing was wrong with the question.
pub(crate) const BUSY: &str = "503 Busy";

/// The address of a gateway's HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InquiryServer {
    host: String,
    port: u16,
}

/// The reason why a text is no [`InquiryServer`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// It names another protocol.
    #[error(
        "the gateway speaks plain HTTP: write http://HOST:PORT, over a tunnel if it is far away"
    )]
    Scheme,
    /// There is more than an address.
    #[error("only the address is wanted: write http://HOST:PORT")]
    Path,
    /// There is no host, or no number after the colon.
    #[error("not an address: write http://HOST:PORT, such as http://127.0.0.1:{DEFAULT_PORT}")]
    Address,
}

impl FromStr for InquiryServer {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let address = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(ServerError::Scheme),
            None => text,
        };
        let address = address.strip_suffix('/').unwrap_or(address);
        if address.contains(['/', '?', '#', '@']) {
            return Err(ServerError::Path);
        }
        // An IPv6 address has colons of its own.
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (address, None),
        };
        let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let port = port.map(str::parse).transpose();
        let port = port.map_err(|_| ServerError::Address)?;
        let is_bare_v6 = bracketed.is_none() && host.contains(':');
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '[' | ']');
        let host = bracketed.unwrap_or(host);
        if is_bare_v6 || host.contains(is_odd) || port == Some(0) {
            return Err(ServerError::Address);
        }
        // `:9490` is this machine.
        let host = match host {
            "" if port.is_some() => "127.0.0.1",
            "" => return Err(ServerError::Address),
            host => host,
        };
        Ok(Self {
            host: host.to_owned(),
            port: port.unwrap_or(DEFAULT_PORT),
        })
    }
}

impl fmt::Display for InquiryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "http://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "http://{}:{}", self.host, self.port)
        }
    }
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum InquiryError {
    /// The name has no address.
    #[error("no address is known for the host of {server}")]
    Resolve {
        /// The server that was asked.
        server: InquiryServer,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing listens there.
    #[error(
        "nothing answers at {server}: start the gateway, and write its [metrics] listen as the URL"
    )]
    Connect {
        /// The server that was asked.
        server: InquiryServer,
        /// The system's reason.
        source: io::Error,
    },
    /// The server was there, but it went or fell silent.
    #[error("{server} broke off or fell silent before its answer was whole")]
    Broken {
        /// The server that was asked.
        server: InquiryServer,
        /// The system's reason.
        source: io::Error,
    },
    /// The server refuses.
    #[error("{server} says: {status}: {problem}")]
    Refused {
        /// The server that was asked.
        server: InquiryServer,
        /// The HTTP status.
        status: String,
        /// The server's own words.
        problem: String,
    },
    /// The server is something else.
    #[error("what answers at {server} is no gateway's HTTP server")]
    Foreign {
        /// The server that was asked.
        server: InquiryServer,
    },
}

impl InquiryError {
    /// Whether the server had no place for one more client. Its answer may be overtaken by the reset of a connection
    /// whose
    /// question nobody read.
    fn is_for_want_of_place(&self) -> bool {
        match self {
            Self::Refused { status, .. } => status == BUSY,
            Self::Broken { source, .. } => matches!(
                source.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
            Self::Resolve { .. } | Self::Connect { .. } | Self::Foreign { .. } => false,
        }
    }
}

/// As much of a server's words as fits a line of an error.
fn words(text: &str) -> String {
    let readable = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(readable).take(200).collect()
}

/// The instant [`PATIENCE`] after it was made.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    clock: Clock,
    begun: Instant,
}

impl Deadline {
    fn in_patience() -> Self {
        let clock = Clock::start();
        let begun = clock.now();
        Self { clock, begun }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = PATIENCE.saturating_sub(self.clock.now().saturating_since(self.begun));
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

impl InquiryServer {
    /// The addresses of the host's name. The system's resolver has no limit of ours: a thread waits for it, and ends
    /// when the resolver does.
    fn addresses(&self, deadline: Deadline) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let (reply, answer) = mpsc::channel();
        let (host, port) = (self.host.clone(), self.port);
        thread::Builder::new().spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            // The asker may have stopped waiting.
            drop(reply.send(found.map(Iterator::collect)));
        })?;
        let late = |_| Err(ErrorKind::TimedOut.into());
        answer.recv_timeout(deadline.left()?).unwrap_or_else(late)
    }

    /// The body of the answer to a GET of `target`, such as `/view`.
    ///
    /// # Errors
    /// [`InquiryError`], within bounded time.
    pub fn get(&self, target: &str) -> Result<String, InquiryError> {
        let server = || self.clone();
        let deadline = Deadline::in_patience();
        let addresses = self.addresses(deadline);
        let addresses = addresses.map_err(|source| InquiryError::Resolve {
            server: server(),
            source,
        })?;
        loop {
            let answer = self.ask(&addresses, target, deadline);
            let is_turned_away = answer
                .as_ref()
                .is_err_and(InquiryError::is_for_want_of_place);
            let has_time = deadline.left().is_ok_and(|left| left > BUSY_PAUSE);
            if !is_turned_away || !has_time {
                return answer;
            }
            // No source can be ready: this only waits.
            drop(wait(&[], Some(BUSY_PAUSE), &mut Vec::new()));
        }
    }

    fn ask(
        &self,
        addresses: &[SocketAddr],
        target: &str,
        deadline: Deadline,
    ) -> Result<String, InquiryError> {
        let server = || self.clone();
        let mut failed = io::Error::from(ErrorKind::NotFound);
        let mut stream = None;
        for address in addresses {
            let left = deadline.left();
            match left.and_then(|left| TcpStream::connect_timeout(address, left)) {
                Ok(found) => {
                    stream = Some(found);
                    break;
                }
                Err(error) => failed = error,
            }
        }
        let Some(stream) = stream else {
            return Err(InquiryError::Connect {
                server: server(),
                source: failed,
            });
        };
        let whole = self.exchange(stream, target, deadline);
        let whole = whole.map_err(|source| InquiryError::Broken {
            server: server(),
            source,
        })?;
        self.body(&whole)
    }

    fn exchange(
        &self,
        mut stream: TcpStream,
        target: &str,
        deadline: Deadline,
    ) -> io::Result<Vec<u8>> {
        stream.set_write_timeout(Some(deadline.left()?))?;
        let question = format!("GET {target} HTTP/1.0\r\nHost: {}\r\n\r\n", self.host);
        stream.write_all(question.as_bytes())?;
        let mut whole = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            stream.set_read_timeout(Some(deadline.left()?))?;
            match stream.read(&mut piece) {
                Ok(0) => return Ok(whole),
                Ok(len) => whole.extend_from_slice(piece.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
            if whole.len() > ANSWER_BYTES_MAX {
                return Err(io::Error::other("the answer is too long"));
            }
        }
    }

    fn body(&self, whole: &[u8]) -> Result<String, InquiryError> {
        let foreign = || InquiryError::Foreign {
            server: self.clone(),
        };
        let whole = core::str::from_utf8(whole).map_err(|_| foreign())?;
        let (head, body) = whole.split_once("\r\n\r\n").ok_or_else(foreign)?;
        let line = head.lines().next().unwrap_or_default();
        let (version, status) = line.split_once(' ').ok_or_else(foreign)?;
        if !version.starts_with("HTTP/1.") {
            return Err(foreign());
        }
        let length = head.lines().skip(1).find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>())
        });
        if let Some(length) = length
            && length.ok() != Some(body.len())
        {
            return Err(InquiryError::Broken {
                server: self.clone(),
                source: ErrorKind::UnexpectedEof.into(),
            });
        }
        if !status.starts_with("200") {
            return Err(InquiryError::Refused {
                server: self.clone(),
                status: words(status),
                problem: words(body),
            });
        }
        Ok(body.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread;

    fn at(text: &str) -> String {
        let server: InquiryServer = text.parse().unwrap();
        server.to_string()
    }

    #[test]
    fn an_address_is_a_url_or_what_is_left_of_it() {
        assert_eq!(at("http://127.0.0.1:9490/"), "http://127.0.0.1:9490");
        assert_eq!(at("gateway.example"), "http://gateway.example:9490");
        assert_eq!(at(":8000"), "http://127.0.0.1:8000");
        assert_eq!(at("[::1]:80"), "http://[::1]:80");
        assert_eq!(at("http://[::1]"), "http://[::1]:9490");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_remedy() {
        let wrong = |text: &str| text.parse::<InquiryServer>().unwrap_err();
        assert_eq!(wrong("https://a"), ServerError::Scheme);
        assert_eq!(wrong("http://a/status"), ServerError::Path);
        assert_eq!(wrong("a@b"), ServerError::Path);
        for text in [
            "", "http://", "a:b", "a:70000", "a:0", "::1", "a b", "[::1", "a\r\nb",
        ] {
            assert_eq!(wrong(text), ServerError::Address, "{text:?}");
        }
    }

    /// The result for a server that says `answer`.
    fn told(answer: &'static [u8]) -> Result<String, InquiryError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server: InquiryServer = listener.local_addr().unwrap().to_string().parse().unwrap();
        let talk = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            let mut lines = BufReader::new(&stream);
            while !asked.ends_with("\r\n\r\n") {
                assert_ne!(lines.read_line(&mut asked).unwrap(), 0, "{asked:?}");
            }
            stream.write_all(answer).unwrap();
            asked
        });
        let told = server.get("/view");
        assert!(talk.join().unwrap().starts_with("GET /view HTTP/1.0\r\n"));
        told
    }

    #[test]
    fn a_server_without_a_place_is_asked_again() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server: InquiryServer = listener.local_addr().unwrap().to_string().parse().unwrap();
        let talk = thread::spawn(move || {
            for answer in ["503 Busy", "503 Busy", "200 OK"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 1_000];
                assert!(stream.read(&mut asked).unwrap() > 0);
                write!(stream, "HTTP/1.0 {answer}\r\nContent-Length: 2\r\n\r\nhi").unwrap();
            }
        });
        assert_eq!(server.get("/view").unwrap(), "hi");
        talk.join().unwrap();
    }

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let whole = told(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        assert_eq!(whole, "hi");
        let cut = told(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nhi");
        assert!(matches!(cut, Err(InquiryError::Broken { .. })), "{cut:?}");
        let odd = told(b"HTTP/1.0 200 OK\r\nContent-Length: -3\r\n\r\nhi");
        assert!(matches!(odd, Err(InquiryError::Broken { .. })), "{odd:?}");
        for foreign in [
            &b""[..],
            b"SSH-2.0-x\r\n",
            b"SSH-2.0 x\r\n\r\n",
            b"\xff\r\n\r\n",
        ] {
            let told = told(foreign);
            assert!(
                matches!(told, Err(InquiryError::Foreign { .. })),
                "{told:?}"
            );
        }
        let refused = told(b"HTTP/1.0 404 Not Found\r\n\r\nno such \x1b[2Jthing\n");
        let line = refused.unwrap_err().to_string();
        assert!(
            line.ends_with("404 Not Found: no such  [2Jthing"),
            "{line:?}"
        );
    }
}
