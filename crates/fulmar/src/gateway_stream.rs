//! A TCP connection that a gateway makes for a program: the opener's side of one flow of the splice
//! (`docs/protocol/splice.md`), on a stream of its own.

use crate::stream::Stream;
use fulmar_net::session::Entropy;
use fulmar_proto::machine::Priority;
use fulmar_proto::splice::records::{
    Accepted, Delivered, Open, RecordPiece, RecordReader, SpliceRecord,
};
use fulmar_proto::splice::{
    ClassId, Destination, FlowId, FlowKind, Host, HostName, RefuseCode, ResetCode,
};
use fulmar_proto::units::FecStrength;
use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// The octets that each side may have on the way beyond those that the other host has acknowledged.
const WINDOW: u32 = 256 << 10;
/// The octets that follow the opening without credit; a gateway takes at least so many (section 9 of the page).
const PRESUMED: u32 = 16 << 10;
/// Octets of one DATA record.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Octets read from the stream at once.
const PIECE_BYTES: usize = 16 << 10;
/// New credit is given for so many octets that the program has read.
const CREDIT_AFTER: u64 = WINDOW as u64 / 4;

/// Octets in order, both ways, between the program and a TCP server that a gateway reaches: what a
/// [`Stream`] is to another program.
///
/// Reading and writing wait. An error-free [`GatewayStream::finish`] means that the server's host has acknowledged every
/// octet.
///
/// # Errors
/// Reading and writing fail as those of a [`Stream`] do where the gateway is concerned. `ConnectionRefused`,
/// `HostUnreachable`, `TimedOut`, `PermissionDenied` and `NotFound` (the name) say why the gateway has no connection to
/// the server, `ConnectionReset` that there was one and it broke, `InvalidData` that the gateway does not speak the
/// protocol.
#[derive(Debug)]
pub struct GatewayStream {
    stream: Stream,
    records: RecordReader,
    /// Octets from the server that the program has not read.
    came: VecDeque<u8>,
    sent: u64,
    /// Octets that may be sent, from the start.
    limit: u64,
    /// Octets that the server's host has acknowledged.
    delivered: u64,
    /// Octets that the program has read.
    read: u64,
    /// Octets of those that the gateway was told of.
    told: u64,
    is_answered: bool,
    /// The server sends no more.
    has_ended: bool,
    is_finished: bool,
    failure: Option<(ErrorKind, &'static str)>,
}

const fn of_refusal(code: RefuseCode) -> (ErrorKind, &'static str) {
    match code {
        RefuseCode::Refused => (ErrorKind::ConnectionRefused, "the server refused"),
        RefuseCode::Unreachable => (
            ErrorKind::HostUnreachable,
            "the gateway finds no way to the server",
        ),
        RefuseCode::Timeout => (ErrorKind::TimedOut, "the server did not answer the gateway"),
        RefuseCode::NotAllowed => (
            ErrorKind::PermissionDenied,
            "the gateway may not connect there: see its `allow` and `relay`",
        ),
        RefuseCode::NameUnknown => (
            ErrorKind::NotFound,
            "the gateway does not find the server's name",
        ),
        RefuseCode::TooMany => (
            ErrorKind::QuotaExceeded,
            "the gateway has as many flows as it may",
        ),
        RefuseCode::Forgotten | RefuseCode::Invalid | RefuseCode::NotKept => (
            ErrorKind::ConnectionAborted,
            "the gateway does not take the flow",
        ),
    }
}

const fn of_reset(code: ResetCode) -> (ErrorKind, &'static str) {
    match code {
        ResetCode::Timeout | ResetCode::Idle => (
            ErrorKind::TimedOut,
            "the connection to the server was silent for too long",
        ),
        _ => (
            ErrorKind::ConnectionReset,
            "the gateway's connection to the server broke",
        ),
    }
}

impl GatewayStream {
    /// The server that `text` names: `host:port`, whose host is an address or a name that the gateway resolves.
    pub(crate) fn destination(text: &str) -> io::Result<Destination> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let wrong = || {
            let problem = format!(
                "`{text}` is no destination; write host:port, as 10.0.0.2:80 or server.example:80"
            );
            Error::new(ErrorKind::InvalidInput, problem)
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        Ok(Destination {
            host: Host::Name(host.parse::<HostName>().map_err(|_| wrong())?),
            port: port.parse().map_err(|_| wrong())?,
        })
    }

    pub(crate) fn open(
        stream: Stream,
        destination: Destination,
        entropy: &mut Entropy,
    ) -> io::Result<Self> {
        let open = Open {
            flow: FlowId(entropy.array()),
            attempt: 1,
            kind: FlowKind::Stream,
            resume: false,
            durable: false,
            again: None,
            refresh: false,
            farewell: false,
            priority: Priority(0),
            class: ClassId(0),
            weight: 1,
            fec_words: FecStrength::NONE,
            block: None,
            deadline: None,
            window: WINDOW,
            presumed: PRESUMED,
            received: 0,
            limit: u64::from(WINDOW),
            kept_from: 0,
            destination,
        };
        let mut opened = Self {
            stream,
            records: RecordReader::default(),
            came: VecDeque::new(),
            sent: 0,
            limit: u64::from(PRESUMED),
            delivered: 0,
            read: 0,
            told: 0,
            is_answered: false,
            has_ended: false,
            is_finished: false,
            failure: None,
        };
        opened.say(&SpliceRecord::Open(Box::new(open)))?;
        Ok(opened)
    }

    /// Ends the own direction and waits until the server's host has acknowledged everything. Octets from the server can
    /// still be read.
    ///
    /// # Errors
    /// Something written may not have arrived, for the reason that the error says.
    pub fn finish(&mut self) -> io::Result<()> {
        if !self.is_finished {
            self.is_finished = true;
            let total = self.sent;
            self.say(&SpliceRecord::End { total })?;
        }
        while self.delivered < self.sent || !self.is_answered {
            self.hear()?;
        }
        Ok(())
    }

    /// The time after which a read fails with `TimedOut`; `None`, as at first, for never. Writing waits for the gateway's
    /// word, too, when as much is under way as may be.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.stream.set_read_timeout(timeout);
        self.stream.set_write_timeout(timeout);
    }

    fn say(&mut self, record: &SpliceRecord<'_>) -> io::Result<()> {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        self.stream.write_all(&octets)
    }

    /// Waits for something of the gateway, and takes it.
    fn hear(&mut self) -> io::Result<()> {
        if let Some((kind, text)) = self.failure {
            return Err(Error::new(kind, text));
        }
        let mut piece = [0; PIECE_BYTES];
        let len = self.stream.read(&mut piece)?;
        if len == 0 {
            self.failure = Some((
                ErrorKind::UnexpectedEof,
                "the gateway ended the flow without a word",
            ));
            return Ok(());
        }
        let mut rest = piece.get(..len).unwrap_or_default();
        loop {
            let record = match self.records.next(&mut rest) {
                Ok(RecordPiece::Wait) => return Ok(()),
                Ok(RecordPiece::Record(record)) => record,
                Err(error) => {
                    let text = "the gateway said what is no record";
                    self.failure = Some((ErrorKind::InvalidData, text));
                    return Err(Error::new(ErrorKind::InvalidData, error));
                }
            };
            let promised = self.told + u64::from(WINDOW);
            let came = self.read + self.came.len() as u64;
            match record {
                SpliceRecord::Data(octets)
                    if !self.has_ended && came + octets.len() as u64 <= promised =>
                {
                    self.came.extend(octets);
                }
                SpliceRecord::End { total } if total == came => self.has_ended = true,
                SpliceRecord::Accepted(Accepted { limit, .. }) => {
                    self.is_answered = true;
                    self.limit = self.limit.max(limit);
                }
                SpliceRecord::Delivered(Delivered { offset, limit }) if offset <= self.sent => {
                    self.delivered = self.delivered.max(offset);
                    self.limit = self.limit.max(limit);
                }
                SpliceRecord::Refused(code) => self.failure = Some(of_refusal(code)),
                SpliceRecord::Reset(code) => self.failure = Some(of_reset(code)),
                // Nobody behind the gateway listens any more; a reset follows what still comes.
                SpliceRecord::Stop
                | SpliceRecord::Finished
                | SpliceRecord::Goal(_)
                | SpliceRecord::Ignored => {}
                _ => {
                    let text = "the gateway said what it may not say here";
                    self.failure = Some((ErrorKind::InvalidData, text));
                    return Err(Error::new(ErrorKind::InvalidData, text));
                }
            }
        }
    }

    /// Tells the gateway what the program has read, if it is much or all.
    fn report(&mut self) -> io::Result<()> {
        let is_all = self.has_ended && self.came.is_empty();
        if self.read - self.told >= CREDIT_AFTER || (is_all && self.read > self.told) {
            self.told = self.read;
            let (offset, limit) = (self.read, self.read + u64::from(WINDOW));
            self.say(&SpliceRecord::Delivered(Delivered { offset, limit }))?;
        }
        Ok(())
    }
}

impl Read for GatewayStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.came.is_empty() && !out.is_empty() {
            if self.has_ended {
                return Ok(0);
            }
            self.hear()?;
        }
        let len = self.came.read(out)?;
        self.read += len as u64;
        // The octets are the program's, whether the gateway hears of them or not; the next call says what broke.
        if let Err(error) = self.report() {
            let text = "the connection to the gateway broke";
            self.failure.get_or_insert((error.kind(), text));
        }
        Ok(len)
    }
}

impl Write for GatewayStream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.is_finished {
            return Err(Error::new(ErrorKind::BrokenPipe, "the stream was finished"));
        }
        if octets.is_empty() {
            return Ok(0);
        }
        while self.sent >= self.limit.min(self.delivered + u64::from(WINDOW))
            && self.failure.is_none()
        {
            self.hear()?;
        }
        if let Some((kind, text)) = self.failure {
            return Err(Error::new(kind, text));
        }
        let most = self.limit.min(self.delivered + u64::from(WINDOW)) - self.sent;
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(RECORD_BYTES_MAX);
        let part = octets.get(..octets.len().min(most)).unwrap_or(octets);
        self.say(&SpliceRecord::Data(part))?;
        self.sent += part.len() as u64;
        Ok(part.len())
    }

    /// Does nothing: octets leave by themselves. [`GatewayStream::finish`] waits until they have arrived.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
