//! A SOCKS client's connection before its flow begins.
//!
//! A message is looked at, answered, and only then taken out of the socket, up to its last octet. So the octets that
//! were taken out and those that were given to the client, which the kernel counts, tell the next gateway how far a
//! killed one had come:
//!
//! | taken | given | stands at |
//! |---|---|---|
//! | 0 | 0 | the greeting |
//! | 0 | 2 | the greeting, which is answered |
//! | some | 2 | the login where one is wanted, else the request |
//! | some | 4 | the login, which is answered, if one is next in the socket, else the request |
//!
//! A refused message is never taken out, so that nobody passes for one who was let in. The request is not answered
//! here, but where its flow or association begins. Whoever refuses ends the connection before anything is thrown away.

use super::codec::{self, Command, Read, Reply, SocksRequest};
use crate::gateway::sockets::kernel;
use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

/// The longest message: a login.
const MESSAGE_MAX: usize = 513;
/// The octets given after the answer to a greeting, and after the answer to a login.
const CHOSEN: u64 = 2;
const LOGGED_IN: u64 = 4;

/// A user that may pass.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::gateway) struct Credentials {
    pub(in crate::gateway) user: Vec<u8>,
    pub(in crate::gateway) password: Vec<u8>,
}

impl Credentials {
    /// Compares in a time that does not depend on the place of a difference.
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

/// The octets taken out of a client's socket, and those given to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Moved {
    pub(in crate::gateway) taken: u64,
    pub(in crate::gateway) given: u64,
}

/// One client's negotiation.
#[derive(Debug)]
pub(in crate::gateway) struct Negotiation {
    stream: TcpStream,
    credentials: Option<Credentials>,
    stage: Stage,
    /// Whether a gateway before has answered the message of this stage.
    answered: bool,
}

/// The progress of a negotiation.
#[derive(Debug)]
pub(in crate::gateway) enum Step {
    /// More must come.
    Wait,
    /// The request, and its length: it is still the first in the socket.
    Asked(SocksRequest, usize),
    /// Over; the reason is for the log.
    Failed(&'static str),
}

/// A message that was answered: its length, and what follows.
type Answered = (usize, Stage);

/// Takes exactly the first `len` octets, which are there, out of a socket.
///
/// # Errors
/// The connection broke.
pub(in crate::gateway) fn take_out(mut stream: &TcpStream, len: usize) -> io::Result<()> {
    let mut octets = [0; MESSAGE_MAX];
    let message = octets.get_mut(..len).ok_or(ErrorKind::InvalidInput)?;
    stream.read_exact(message)
}

/// The address in replies that have none to tell.
pub(in crate::gateway) fn no_address() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

impl Negotiation {
    /// A negotiation that goes on after so many octets. An error returns the client's connection, if no negotiation
    /// could have moved so many.
    pub(in crate::gateway) fn resumed(
        stream: TcpStream,
        credentials: Option<Credentials>,
        moved: Moved,
    ) -> Result<Self, TcpStream> {
        let wants_login = credentials.is_some();
        let (stage, answered) = match (moved.taken, moved.given) {
            (0, 0) => (Stage::Greeting, false),
            (0, CHOSEN) => (Stage::Greeting, true),
            (_, CHOSEN) if wants_login => (Stage::Login, false),
            (_, CHOSEN) => (Stage::Request, false),
            (1.., LOGGED_IN) => {
                let mut next = [0];
                let is_login = matches!(stream.peek(&mut next), Ok(1)) && codec::is_login(&next);
                if is_login && wants_login {
                    (Stage::Login, true)
                } else {
                    (Stage::Request, false)
                }
            }
            _ => return Err(stream),
        };
        Ok(Self {
            stream,
            credentials,
            stage,
            answered,
        })
    }

    pub(in crate::gateway) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(in crate::gateway) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Looks at the octets that have come and answers them. A watch for edges tells of each octet that comes, even
    /// behind others that were left in the socket.
    pub(in crate::gateway) fn advance(&mut self) -> Step {
        const BROKE: Step = Step::Failed("the client's connection broke");
        // Asked first: once the client has ended its direction, all of its octets are there.
        let ended = kernel::has_ended(&self.stream);
        let mut octets = [0; MESSAGE_MAX];
        loop {
            let len = match self.stream.peek(&mut octets) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return BROKE,
            };
            let came = &octets[..len];
            let step = match self.stage {
                Stage::Greeting => self.greeting(came),
                Stage::Login => self.login(came),
                Stage::Request => return self.request(came, ended),
            };
            match step {
                Ok(Some((len, next))) => {
                    if take_out(&self.stream, len).is_err() {
                        return BROKE;
                    }
                    self.stage = next;
                    self.answered = false;
                }
                Ok(None) if ended => return Step::Failed("the client left"),
                Ok(None) => return Step::Wait,
                Err(why) => return Step::Failed(why),
            }
        }
    }

    /// Answers fit the empty send buffer of a new connection.
    fn say(&mut self, octets: &[u8]) -> Result<(), &'static str> {
        if self.answered {
            return Ok(());
        }
        match self.stream.write(octets) {
            Ok(len) if len == octets.len() => Ok(()),
            _ => Err("the client takes no answer"),
        }
    }

    fn greeting(&mut self, came: &[u8]) -> Result<Option<Answered>, &'static str> {
        match codec::greeting(came, self.credentials.is_some()) {
            Read::More => Ok(None),
            Read::Wrong(why) => Err(why),
            Read::Done((answer, acceptable), len) => {
                self.say(&answer)?;
                if !acceptable {
                    return Err("the client offers no method that is allowed here");
                }
                let next = if self.credentials.is_some() {
                    Stage::Login
                } else {
                    Stage::Request
                };
                Ok(Some((len, next)))
            }
        }
    }

    fn login(&mut self, came: &[u8]) -> Result<Option<Answered>, &'static str> {
        match codec::login(came) {
            Read::More => Ok(None),
            Read::Wrong(why) => Err(why),
            Read::Done(login, len) => {
                let accepted = self.credentials.as_ref().is_some_and(|c| c.fit(&login));
                self.say(&codec::login_reply(accepted))?;
                if accepted {
                    Ok(Some((len, Stage::Request)))
                } else {
                    Err("wrong user or password")
                }
            }
        }
    }

    fn request(&mut self, came: &[u8], ended: bool) -> Step {
        match codec::request(came) {
            Read::More if ended => Step::Failed("the client left"),
            Read::More => Step::Wait,
            Read::Wrong(why) => {
                let refusal = codec::reply(Reply::AddressTypeNotSupported, no_address());
                // It is over either way.
                let _ = self.say(&refusal);
                Step::Failed(why)
            }
            Read::Done(request, _) if request.command == Command::Other => {
                let refusal = codec::reply(Reply::CommandNotSupported, no_address());
                let _ = self.say(&refusal);
                Step::Failed("a command other than CONNECT and UDP ASSOCIATE")
            }
            Read::Done(request, len) => Step::Asked(request, len),
        }
    }
}

#[cfg(test)]
mod tests;
