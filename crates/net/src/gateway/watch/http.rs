//! The gateway's HTTP server (RFC 9112): the live page, `/view`, `/history`, `/status` and `/metrics`. It
//! gives one answer to a connection and changes nothing. It asks the loop, which does nothing for it between
//! questions but tell its status once a second.
//!
//! # Promises
//! - A client that sends or reads slowly holds up no other: each connection has a thread of its own.
//! - A bounded number of connections is served at once, each for a bounded time and with bounded memory. Clients that
//!   do not ask, or do not take their answers, give way to whoever comes ([`places`]).
//! - Only GET and HEAD are answered, and nothing that is asked changes anything.
//! - At a loopback address, only requests for the loopback are answered: a page of the web whose name was
//!   made to point here ("DNS rebinding") learns nothing.

mod places;
pub mod request;

use super::metrics;
use super::page;
use super::registry::Value;
use super::snapshots::{SNAPSHOTS_MAX, Snapshot, Snapshots, Source};
use super::status::Status;
use super::view::View;
use crate::clock::Clock;
use crate::gateway::GatewayError;
use crate::inquiry::BUSY;
use crate::wait::wait;
use fulmar_proto::units::Instant;
use places::{Place, Places, Stage};
use request::{HttpRequest, Progress, RequestReader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// The time that a client has to ask, in however many pieces.
const ASKS_WITHIN: Duration = Duration::from_secs(5);
/// The longest time for which a client is served, from its arrival on.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// The most pieces in which octets behind a client's request are read.
const PIECES_BEYOND_MAX: usize = 256;
/// The pause after the system was short of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The answer to a request.
struct Answer {
    status: &'static str,
    kind: &'static str,
    /// Further header lines, each with its end.
    headers: String,
    body: String,
}

fn answer(kind: &'static str, body: String) -> Answer {
    Answer {
        status: "200 OK",
        kind,
        headers: String::new(),
        body,
    }
}

/// The time at which a client arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    clock: Clock,
    at: Instant,
}

impl Arrival {
    fn now(clock: Clock) -> Self {
        let at = clock.now();
        Self { clock, at }
    }

    /// The rest of `span` since the arrival; an error once it is over.
    fn left(&self, span: Duration) -> io::Result<Duration> {
        let left = span.saturating_sub(self.clock.now().saturating_since(self.at));
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

fn plain(status: &'static str, body: &str) -> Answer {
    Answer {
        status,
        kind: TEXT,
        headers: String::new(),
        body: format!("{body}\n"),
    }
}

fn silent() -> Answer {
    plain("503 Unavailable", "the gateway does not answer")
}

fn json(record: &impl Serialize) -> Answer {
    match serde_json::to_string(record) {
        Ok(body) => answer(JSON, body + "\n"),
        Err(error) => plain("500 Error", &error.to_string()),
    }
}

fn refused(listen: SocketAddr) -> impl Fn(io::Error) -> GatewayError {
    move |source| GatewayError::Listen {
        what: "metrics",
        listen,
        source,
    }
}

/// Opens the port.
pub(in crate::gateway) fn bind(listen: SocketAddr) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(listen).map_err(refused(listen))
}

/// Serves until the process ends. The address is that of the port.
pub(in crate::gateway) fn serve(
    listener: TcpListener,
    source: Box<dyn Source>,
) -> Result<SocketAddr, GatewayError> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let local = listener.local_addr().map_err(refused(unknown))?;
    let wrong = refused(local);
    let snapshots = Snapshots::begin(source).map_err(&wrong)?;
    thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || accept(&listener, &snapshots))
        .map_err(wrong)?;
    Ok(local)
}

fn accept(listener: &TcpListener, snapshots: &Arc<Snapshots>) {
    let places = Places::default();
    let clock = Clock::start();
    loop {
        let Ok((stream, from)) = listener.accept() else {
            drop(wait(&[], Some(ACCEPT_PAUSE), &mut Vec::new()));
            continue;
        };
        let stream = Arc::new(stream);
        let arrival = Arrival::now(clock);
        let Some(place) = places.take(&stream, from.ip()) else {
            // It fits into a fresh connection's buffer, so that nothing waits here.
            drop(stream.set_nonblocking(true));
            let busy = plain(BUSY, "too many clients");
            drop(say(&stream, arrival, "GET", &busy, |_| {}));
            continue;
        };
        let snapshots = Arc::clone(snapshots);
        let talk = move || {
            // The client has gone, took too long, or gave way.
            drop(talk(&stream, arrival, &place, &snapshots));
        };
        // Without a thread the connection is closed and its place free again.
        drop(
            thread::Builder::new()
                .name("http-client".to_owned())
                .spawn(talk),
        );
    }
}

/// One request and its answer.
fn talk(
    stream: &TcpStream,
    arrival: Arrival,
    place: &Place,
    snapshots: &Snapshots,
) -> io::Result<()> {
    let enter = |stage| place.enter(stage);
    let Some(request) = request(stream, arrival)? else {
        let problem = plain("431 Too Large", "the request is too long");
        return say(stream, arrival, "GET", &problem, enter);
    };
    let is_loopback = stream.local_addr()?.ip().to_canonical().is_loopback();
    if is_loopback && !request.is_for_loopback() {
        let problem = "this server is asked for by its address or as localhost";
        let problem = plain("403 Forbidden", problem);
        return say(stream, arrival, "GET", &problem, enter);
    }
    place.enter(Stage::Answering);
    let answer = respond(&request, snapshots);
    say(stream, arrival, request.method(), &answer, enter)
}

fn respond(request: &HttpRequest, snapshots: &Snapshots) -> Answer {
    if !matches!(request.method(), "GET" | "HEAD") {
        return Answer {
            headers: "Allow: GET, HEAD\r\n".to_owned(),
            ..plain("405 Not Allowed", "this server only tells: GET and HEAD")
        };
    }
    let of = |tell: fn(&Snapshot) -> Answer| match snapshot(request, snapshots) {
        Ok(snapshot) => tell(&snapshot),
        Err(answer) => answer,
    };
    match request.path() {
        "/" => page(snapshot(request, snapshots).ok().as_deref()),
        "/metrics" => of(|snapshot| answer(OPEN_METRICS, metrics::text(snapshot))),
        "/status" => of(status),
        "/view" => of(|snapshot| json(&View::of(snapshot))),
        "/history" => history(request, snapshots),
        _ => plain(
            "404 Not Found",
            "there is /, /status, /metrics, /view and /history",
        ),
    }
}

/// The number that a query gives to `name`, if there is one.
fn number(request: &HttpRequest, name: &str) -> Result<Option<u64>, Answer> {
    let wrong = |_| plain("400 Bad Request", &format!("{name} must be a whole number"));
    request.number(name).map_err(wrong)
}

/// The snapshot that a query asks for: the present one, if it names none.
fn snapshot(request: &HttpRequest, snapshots: &Snapshots) -> Result<Arc<Snapshot>, Answer> {
    match number(request, "sequence")? {
        None => snapshots.take().ok_or_else(silent),
        Some(sequence) => snapshots.get(sequence).ok_or_else(|| {
            let problem = format!("there is no such snapshot: the last {SNAPSHOTS_MAX} are kept");
            plain("404 Not Found", &problem)
        }),
    }
}

fn history(request: &HttpRequest, snapshots: &Snapshots) -> Answer {
    let peer = match number(request, "peer") {
        Ok(peer) => usize::try_from(peer.unwrap_or(0)).unwrap_or(usize::MAX),
        Err(answer) => return answer,
    };
    let Some(now) = snapshots.take() else {
        return silent();
    };
    match snapshots.history(&now, peer) {
        Some(report) => json(&report),
        None => plain("404 Not Found", "there is no such peer: count from 0"),
    }
}

/// The page, also while the gateway is silent: its script says so, and asks again.
fn page(snapshot: Option<&Snapshot>) -> Answer {
    match page::page(snapshot.map(|snapshot| &snapshot.status)) {
        Ok((body, policy)) => Answer {
            headers: policy,
            ..answer(HTML, body)
        },
        Err(error) => plain("500 Error", &error.to_string()),
    }
}

/// Reads a client's request; `None` if it is longer than allowed.
fn request(mut stream: &TcpStream, arrival: Arrival) -> io::Result<Option<HttpRequest>> {
    let mut reader = RequestReader::default();
    let mut piece = [0; 1024];
    // Each piece brings an octet at least, so that this ends.
    loop {
        stream.set_read_timeout(Some(arrival.left(ASKS_WITHIN)?))?;
        let len = match stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match reader.push(&piece[..len]) {
            Progress::More => {}
            Progress::TooLong => return Ok(None),
            Progress::Done(request) => return Ok(Some(request)),
        }
    }
}

/// Sends an answer and waits for its client's end; `enter` is told of each stage.
fn say(
    mut stream: &TcpStream,
    arrival: Arrival,
    method: &str,
    answer: &Answer,
    enter: impl Fn(Stage),
) -> io::Result<()> {
    let Answer {
        status,
        kind,
        headers,
        body,
    } = answer;
    let mut text = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{headers}\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        text.push_str(body);
    }
    enter(Stage::Telling);
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(arrival.left(SERVED_WITHIN)?))?;
        match stream.write(rest) {
            Ok(len) => rest = rest.get(len..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    enter(Stage::Told);
    stream.shutdown(Shutdown::Write)?;
    // Octets behind the request are read, since the kernel would answer them with a reset
    // that may overtake the answer.
    let mut beyond = [0; 1024];
    for _ in 0..PIECES_BEYOND_MAX {
        stream.set_read_timeout(Some(arrival.left(SERVED_WITHIN)?))?;
        if stream.read(&mut beyond)? == 0 {
            break;
        }
    }
    Ok(())
}

/// A snapshot as a record: how everything is, and every figure by its name in `/metrics`.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// The number of the snapshot: `?sequence=` asks for it again.
    sequence: u64,
    metrics: BTreeMap<String, Value>,
}

fn status(snapshot: &Snapshot) -> Answer {
    let record = Record {
        status: &snapshot.status,
        sequence: snapshot.sequence,
        metrics: metrics::object(snapshot),
    };
    match serde_json::to_string_pretty(&record) {
        Ok(body) => answer(JSON, body + "\n"),
        Err(error) => plain("500 Error", &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshots::Silence;
    use super::*;

    /// The answer to a client whose request is well formed.
    fn asked(server: SocketAddr, target: &str) -> String {
        let mut client = TcpStream::connect(server).unwrap();
        write!(client, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[derive(Debug)]
    struct Ended;

    impl Source for Ended {
        fn ask(&self) -> Result<Status, Silence> {
            Err(Silence::Ended)
        }
    }

    /// The address of a server whose gateway has ended.
    fn served_without_a_gateway() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let snapshots = Arc::new(Snapshots::new(Box::new(Ended)));
        thread::spawn(move || accept(&listener, &snapshots));
        server
    }

    #[test]
    fn clients_that_do_not_ask_or_do_not_read_keep_nobody_out() {
        let server = served_without_a_gateway();
        let mut dawdlers = Vec::new();
        for n in 0..100 {
            let mut dawdler = TcpStream::connect(server).unwrap();
            // Some say nothing, some begin to ask, some ask and never read.
            let asks = ["", "GET / HT", "GET / HTTP/1.0\r\n\r\n"][n % 3];
            dawdler.write_all(asks.as_bytes()).unwrap();
            dawdlers.push(dawdler);
            assert!(asked(server, "/").starts_with("HTTP/1.0 200 OK"), "{n}");
        }
    }

    #[test]
    fn a_client_that_sends_an_octet_now_and_then_is_left_after_a_while() {
        let server = served_without_a_gateway();
        let mut dripper = TcpStream::connect(server).unwrap();
        let pause = Duration::from_millis(50);
        let rounds = 20 * ASKS_WITHIN.as_millis() / pause.as_millis();
        let left = (0..rounds).any(|_| {
            drop(wait(&[], Some(pause), &mut Vec::new()));
            dripper.write(b"G").is_err()
        });
        assert!(left);
    }

    #[test]
    fn that_the_gateway_is_silent_is_not_told_as_a_lack_of_what_was_asked_for() {
        let server = served_without_a_gateway();
        for target in ["/view", "/history", "/history?peer=9", "/status"] {
            let answer = asked(server, target);
            assert!(answer.starts_with("HTTP/1.0 503"), "{target}: {answer}");
        }
    }
}
