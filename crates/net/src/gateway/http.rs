//! The gateway's HTTP server (RFC 9112): the live page, `/view`, `/history`, `/status` and `/metrics`. It
//! gives one answer to a connection, reads only, and asks the loop, which does nothing for it between
//! questions but to say once a second how it is.
//!
//! # Promises
//! - A client that sends or reads slowly holds up no other: each connection has a thread of its own.
//! - At most [`CONNECTIONS_MAX`] connections are served at once, each for a bounded time and with
//!   bounded memory; who comes beyond is turned away with 503.
//! - Only GET and HEAD are answered, and nothing that is asked changes anything.
//! - At a loopback address, only who asks for the loopback is answered: a page of the web whose name was
//!   made to point here ("DNS rebinding") learns nothing.

use super::command::Control;
use super::error::GatewayError;
use super::metrics;
use super::page;
use super::registry::Value;
use super::snapshots::{SNAPSHOTS_MAX, Snapshot, Snapshots};
use super::status::Status;
use super::view::View;
use crate::clock::Clock;
use crate::wait::wait;
use fulmar_proto::units::Instant;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

const CONNECTIONS_MAX: usize = 32;
/// A request's line and headers.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// A client has so long to ask, in however many pieces.
const ASKS_WITHIN: Duration = Duration::from_secs(5);
/// From its arrival on, a client is served no longer.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// What a client says beyond its request is read in no more pieces.
const PIECES_BEYOND_MAX: usize = 256;
/// How long to rest when the system is short of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What is sent back.
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

/// Since when a client is served.
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

    /// What is left of `span`; an error once it is over.
    fn left(&self, span: Duration) -> io::Result<Duration> {
        let left = span.saturating_sub(self.clock.now().saturating_since(self.at));
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// One of the connections that are served at once, for as long as it is held.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(served: &Arc<AtomicUsize>) -> Option<Self> {
        // Given back at once if there are too many.
        let place = Self(Arc::clone(served));
        (served.fetch_add(1, Ordering::SeqCst) < CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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

/// Serves at `listen` until the process ends.
pub(super) fn serve(listen: SocketAddr, control: Control) -> Result<SocketAddr, GatewayError> {
    let wrong = |source| GatewayError::Listen {
        what: "metrics",
        listen,
        source,
    };
    let listener = TcpListener::bind(listen).map_err(wrong)?;
    let local = listener.local_addr().map_err(wrong)?;
    let snapshots = Snapshots::begin(control).map_err(wrong)?;
    thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || accept(&listener, &snapshots))
        .map_err(wrong)?;
    Ok(local)
}

fn accept(listener: &TcpListener, snapshots: &Arc<Snapshots>) {
    let served = Arc::new(AtomicUsize::new(0));
    let clock = Clock::start();
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            drop(wait(&[], Some(ACCEPT_PAUSE), &mut Vec::new()));
            continue;
        };
        let arrival = Arrival::now(clock);
        let Some(place) = Place::take(&served) else {
            // It fits into a fresh connection's buffer, so that nothing waits here.
            drop(stream.set_nonblocking(true));
            let busy = plain("503 Busy", "too many clients");
            drop(say(&stream, arrival, "GET", &busy));
            continue;
        };
        let snapshots = Arc::clone(snapshots);
        let talk = move || {
            // The client has gone, or took too long.
            drop(talk(&stream, arrival, &snapshots));
            drop(place);
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
fn talk(stream: &TcpStream, arrival: Arrival, snapshots: &Snapshots) -> io::Result<()> {
    let Some(head) = request(stream, arrival)? else {
        let problem = plain("431 Too Large", "the request is too long");
        return say(stream, arrival, "GET", &problem);
    };
    let is_loopback = stream.local_addr()?.ip().to_canonical().is_loopback();
    if is_loopback && !host(&head).is_none_or(names_loopback) {
        let problem = "this server is asked for by its address or as localhost";
        return say(stream, arrival, "GET", &plain("403 Forbidden", problem));
    }
    let mut words = head.split_ascii_whitespace();
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let answer = respond(method, target, snapshots);
    say(stream, arrival, method, &answer)
}

/// Whom a request is for (RFC 9112, section 3.2), without the port.
fn host(head: &str) -> Option<&str> {
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts = headers.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts.next()?.1.trim();
    // An IPv6 address is in brackets.
    let end = host
        .rfind(':')
        .filter(|end| host.rfind(']').is_none_or(|last| last < *end));
    end.map_or(Some(host), |end| host.get(..end))
}

/// An address says nothing that a name server could have chosen.
fn names_loopback(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let is_address = bracketed.unwrap_or(host).parse::<IpAddr>().is_ok();
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    is_address || host.is_empty() || host == "localhost" || host.ends_with(".localhost")
}

fn respond(method: &str, target: &str, snapshots: &Snapshots) -> Answer {
    if !matches!(method, "GET" | "HEAD") {
        return Answer {
            headers: "Allow: GET, HEAD\r\n".to_owned(),
            ..plain("405 Not Allowed", "this server only tells: GET and HEAD")
        };
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let of = |tell: fn(&Snapshot) -> Answer| match snapshot(query, snapshots) {
        Ok(snapshot) => tell(&snapshot),
        Err(answer) => answer,
    };
    match path {
        "/" => page(),
        "/metrics" => of(|snapshot| answer(OPEN_METRICS, metrics::text(snapshot))),
        "/status" => of(status),
        "/view" => of(|snapshot| json(&View::of(snapshot))),
        "/history" => history(query, snapshots),
        _ => plain(
            "404 Not Found",
            "there is /, /status, /metrics, /view and /history",
        ),
    }
}

/// The number that a query gives to `name`, if it gives any.
fn number(query: &str, name: &str) -> Result<Option<u64>, Answer> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, value)) = pairs.find(|(key, _)| *key == name) else {
        return Ok(None);
    };
    let parsed = value.parse().map(Some);
    parsed.map_err(|_| plain("400 Bad Request", &format!("{name} must be a whole number")))
}

/// The snapshot that a query asks for: that of now, if it names none.
fn snapshot(query: &str, snapshots: &Snapshots) -> Result<Arc<Snapshot>, Answer> {
    match number(query, "sequence")? {
        None => snapshots.take().ok_or_else(silent),
        Some(sequence) => snapshots.get(sequence).ok_or_else(|| {
            let problem = format!("there is no such snapshot: the last {SNAPSHOTS_MAX} are kept");
            plain("404 Not Found", &problem)
        }),
    }
}

fn history(query: &str, snapshots: &Snapshots) -> Answer {
    let peer = match number(query, "peer") {
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

fn page() -> Answer {
    match page::page() {
        Ok((body, policy)) => Answer {
            headers: policy,
            ..answer(HTML, body)
        },
        Err(error) => plain("500 Error", &error.to_string()),
    }
}

/// The request's line and headers; `None` if they are longer than allowed.
fn request(mut stream: &TcpStream, arrival: Arrival) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    // Each piece brings an octet at least, so that this ends.
    while head.len() <= REQUEST_BYTES_MAX {
        stream.set_read_timeout(Some(arrival.left(ASKS_WITHIN)?))?;
        let len = match stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&piece[..len]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&head[..end]).into_owned()));
        }
    }
    Ok(None)
}

fn say(mut stream: &TcpStream, arrival: Arrival, method: &str, answer: &Answer) -> io::Result<()> {
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
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(arrival.left(SERVED_WITHIN)?))?;
        match stream.write(rest) {
            Ok(len) => rest = rest.get(len..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // What the client said beyond its request is read, since the kernel would answer it with a reset
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
    /// Of the snapshot: `?sequence=` asks for it again.
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
    use super::*;
    use crate::wait::waker;

    /// What a client is answered that asks properly.
    fn asked(server: SocketAddr, target: &str) -> String {
        let mut client = TcpStream::connect(server).unwrap();
        write!(client, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    /// The address of a server whose gateway has ended.
    fn served_without_a_gateway() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let (control, _) = Control::new(waker().unwrap().0);
        let snapshots = Arc::new(Snapshots::new(control));
        thread::spawn(move || accept(&listener, &snapshots));
        server
    }

    #[test]
    fn clients_that_send_an_octet_now_and_then_lose_their_places() {
        let server = served_without_a_gateway();
        let drippers = (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(server).unwrap());
        let mut drippers: Vec<TcpStream> = drippers.collect();
        assert!(asked(server, "/").starts_with("HTTP/1.0 503 Busy"));
        let pause = Duration::from_millis(50);
        let rounds = 2 * ASKS_WITHIN.as_millis() / pause.as_millis();
        for _ in 0..rounds {
            for dripper in &mut drippers {
                // It may have been left already.
                drop(dripper.write(b"G"));
            }
            drop(wait(&[], Some(pause), &mut Vec::new()));
        }
        assert!(asked(server, "/").starts_with("HTTP/1.0 200 OK"));
    }

    #[test]
    fn that_the_gateway_is_silent_is_not_told_as_a_lack_of_what_was_asked_for() {
        let server = served_without_a_gateway();
        for target in ["/view", "/history", "/history?peer=9", "/status"] {
            let answer = asked(server, target);
            assert!(answer.starts_with("HTTP/1.0 503"), "{target}: {answer}");
        }
    }

    #[test]
    fn only_addresses_and_localhost_name_the_loopback() {
        let of = |value: &str| {
            let head = format!("GET / HTTP/1.1\r\nAccept: */*\r\nhOst: {value}\r\nX: y");
            host(&head).map(names_loopback)
        };
        for own in [
            "127.0.0.1:9490",
            "[::1]:9490",
            "[::1]",
            "localhost",
            "LocalHost:1",
            "a.localhost",
            "",
        ] {
            assert_eq!(of(own), Some(true), "{own}");
        }
        for foreign in [
            "evil.example:9490",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "]x:1",
            "notlocalhost",
        ] {
            assert_eq!(of(foreign), Some(false), "{foreign}");
        }
        assert_eq!(host("GET / HTTP/1.0"), None, "old clients do not say");
    }

    #[test]
    fn a_query_gives_numbers_or_is_wrong() {
        let number = |query| number(query, "peer").map_err(|answer| answer.status);
        assert_eq!(number(""), Ok(None));
        assert_eq!(number("peers=1&x"), Ok(None));
        assert_eq!(number("a=b&peer=12"), Ok(Some(12)));
        for wrong in ["peer=", "peer=-1", "peer=1e9", "peer=99999999999999999999"] {
            assert_eq!(number(wrong), Err("400 Bad Request"), "{wrong}");
        }
    }
}
