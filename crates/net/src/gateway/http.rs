//! `/metrics` and `/status`: a small HTTP server (RFC 9112) that gives one answer to a connection. It
//! asks the loop, which does nothing for it between questions.
//!
//! # Promises
//! - A client that sends or reads slowly holds up no other: each connection has a thread of its own.
//! - At most [`CONNECTIONS_MAX`] connections are served at once, each for a bounded time and with
//!   bounded memory; who comes beyond is turned away with 503.

use super::command::Control;
use super::error::GatewayError;
use super::metrics;
use crate::wait::wait;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

const SILENT: &str = "the gateway does not answer";

const CONNECTIONS_MAX: usize = 32;
/// A request's line and headers.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// A client that sends or reads nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// Nor may it send or read in more pieces than these.
const PIECES_MAX: usize = 256;
/// How long to rest when the system is short of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What is sent back.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

fn plain(status: &'static str, body: &str) -> Answer {
    Answer {
        status,
        kind: TEXT,
        body: format!("{body}\n"),
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
    thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || accept(&listener, &control))
        .map_err(wrong)?;
    Ok(local)
}

fn accept(listener: &TcpListener, control: &Control) {
    let served = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            drop(wait(&[], Some(ACCEPT_PAUSE), &mut Vec::new()));
            continue;
        };
        let (served, control) = (Arc::clone(&served), control.try_clone());
        if served.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
            served.fetch_sub(1, Ordering::SeqCst);
            // It fits into a fresh connection's buffer, so that nothing waits here.
            drop(stream.set_nonblocking(true));
            drop(say(&stream, "GET", &plain("503 Busy", "too many clients")));
            continue;
        }
        let count = Arc::clone(&served);
        let talk = move || {
            if let Ok(control) = control {
                // The client has gone.
                drop(talk(&stream, &control));
            }
            count.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new()
            .name("http-client".to_owned())
            .spawn(talk)
            .is_err()
        {
            served.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// One request and its answer.
fn talk(stream: &TcpStream, control: &Control) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = request(stream)? else {
        return say(
            stream,
            "GET",
            &plain("431 Too Large", "the request is too long"),
        );
    };
    let mut words = head.split_ascii_whitespace();
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let answer = match (method, path) {
        ("GET" | "HEAD", "/metrics") => metrics_page(control),
        ("GET" | "HEAD", "/status") => status_page(control),
        _ => plain("404 Not Found", "there is /metrics and /status"),
    };
    say(stream, method, &answer)
}

/// The request's line and headers; `None` if they are longer than allowed.
fn request(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    for _ in 0..PIECES_MAX {
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
        if head.len() > REQUEST_BYTES_MAX {
            break;
        }
    }
    Ok(None)
}

fn say(mut stream: &TcpStream, method: &str, answer: &Answer) -> io::Result<()> {
    let Answer { status, kind, body } = answer;
    let mut text = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        text.push_str(body);
    }
    let mut rest = text.as_bytes();
    for _ in 0..PIECES_MAX {
        if rest.is_empty() {
            break;
        }
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
    for _ in 0..PIECES_MAX {
        if stream.read(&mut beyond)? == 0 {
            break;
        }
    }
    Ok(())
}

fn status_page(control: &Control) -> Answer {
    let Some(status) = control.status() else {
        return plain("503 Unavailable", SILENT);
    };
    match serde_json::to_string_pretty(&status) {
        Ok(body) => Answer {
            status: "200 OK",
            kind: JSON,
            body: body + "\n",
        },
        Err(error) => plain("500 Error", &error.to_string()),
    }
}

fn metrics_page(control: &Control) -> Answer {
    let Some(status) = control.status() else {
        return plain("503 Unavailable", SILENT);
    };
    Answer {
        status: "200 OK",
        kind: OPEN_METRICS,
        body: metrics::text(&status),
    }
}
