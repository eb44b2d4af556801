//! What happens on a SOCKS client's connection before its flow begins.

use super::codec::{self, Command, Read, Reply, Request};
use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

/// The longest message is a login of 513 octets; what comes after it belongs to the flow.
const BUFFER_MAX: usize = 4_096;

/// A user that may pass.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::gateway) struct Credentials {
    pub(in crate::gateway) user: Vec<u8>,
    pub(in crate::gateway) password: Vec<u8>,
}

impl Credentials {
    /// Compares in a time that does not depend on where the difference is.
    fn fit(&self, login: &codec::Login) -> bool {
        let differs = |a: &[u8], b: &[u8]| {
            let octets = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
            octets != 0 || a.len() != b.len()
        };
        let user = differs(&self.user, &login.user);
        let password = differs(&self.password, &login.password);
        !(user | password)
    }
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Greeting,
    Login,
    Request,
}

/// One client's negotiation.
#[derive(Debug)]
pub(in crate::gateway) struct Negotiation {
    stream: TcpStream,
    credentials: Option<Credentials>,
    stage: Stage,
    received: Vec<u8>,
}

/// How far it is.
#[derive(Debug)]
pub(in crate::gateway) enum Step {
    /// More must come.
    Wait,
    /// The request, and octets that came after it.
    Asked(Request, Vec<u8>),
    /// Over; the reason is for the log.
    Failed(&'static str),
}

/// The address in replies that have none to tell.
pub(in crate::gateway) fn no_address() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

impl Negotiation {
    pub(in crate::gateway) const fn new(
        stream: TcpStream,
        credentials: Option<Credentials>,
    ) -> Self {
        Self {
            stream,
            credentials,
            stage: Stage::Greeting,
            received: Vec::new(),
        }
    }

    pub(in crate::gateway) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Reads what has come and answers it.
    pub(in crate::gateway) fn advance(&mut self) -> Step {
        let Ok(ended) = self.fill() else {
            return Step::Failed("the client's connection broke");
        };
        loop {
            let step = match self.stage {
                Stage::Greeting => self.greeting(),
                Stage::Login => self.login(),
                Stage::Request => return self.request(ended),
            };
            match step {
                Ok(true) => {}
                Ok(false) if ended => return Step::Failed("the client left"),
                Ok(false) => return Step::Wait,
                Err(why) => return Step::Failed(why),
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 512];
        while self.received.len() < BUFFER_MAX {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(len) => self.received.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Answers fit the empty send buffer of a new connection.
    fn say(&mut self, octets: &[u8]) -> Result<(), &'static str> {
        match self.stream.write(octets) {
            Ok(len) if len == octets.len() => Ok(()),
            _ => Err("the client takes no answer"),
        }
    }

    fn greeting(&mut self) -> Result<bool, &'static str> {
        match codec::greeting(&self.received, self.credentials.is_some()) {
            Read::More => Ok(false),
            Read::Wrong(why) => Err(why),
            Read::Done((answer, acceptable), len) => {
                self.received.drain(..len);
                self.say(&answer)?;
                if !acceptable {
                    return Err("the client offers no method that is allowed here");
                }
                self.stage = if self.credentials.is_some() {
                    Stage::Login
                } else {
                    Stage::Request
                };
                Ok(true)
            }
        }
    }

    fn login(&mut self) -> Result<bool, &'static str> {
        match codec::login(&self.received) {
            Read::More => Ok(false),
            Read::Wrong(why) => Err(why),
            Read::Done(login, len) => {
                self.received.drain(..len);
                let accepted = self.credentials.as_ref().is_some_and(|c| c.fit(&login));
                self.say(&codec::login_reply(accepted))?;
                self.stage = Stage::Request;
                if accepted {
                    Ok(true)
                } else {
                    Err("wrong user or password")
                }
            }
        }
    }

    fn request(&mut self, ended: bool) -> Step {
        match codec::request(&self.received) {
            Read::More if ended => Step::Failed("the client left"),
            Read::More => Step::Wait,
            Read::Wrong(why) => {
                let refusal = codec::reply(Reply::AddressTypeNotSupported, no_address());
                // It is over either way.
                let _ = self.say(&refusal);
                Step::Failed(why)
            }
            Read::Done(request, len) if request.command == Command::Other => {
                self.received.drain(..len);
                let refusal = codec::reply(Reply::CommandNotSupported, no_address());
                let _ = self.say(&refusal);
                Step::Failed("a command other than CONNECT and UDP ASSOCIATE")
            }
            Read::Done(request, len) => {
                self.received.drain(..len);
                Step::Asked(request, core::mem::take(&mut self.received))
            }
        }
    }
}
