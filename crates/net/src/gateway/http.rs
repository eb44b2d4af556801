//! `/metrics` and `/status`: a small HTTP server on a thread of its own. It asks the loop, which
//! does nothing for it between questions.

use super::command::Control;
use super::error::GatewayError;
use super::metrics;
use std::io;
use std::net::SocketAddr;
use std::thread;
use tiny_http::{Header, Method, Response, Server};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Serves at `listen` until the process ends.
pub(super) fn serve(listen: SocketAddr, control: Control) -> Result<SocketAddr, GatewayError> {
    let wrong = |source| GatewayError::Listen {
        what: "metrics",
        listen,
        source,
    };
    let server = Server::http(listen).map_err(|error| {
        let source = error.downcast::<io::Error>();
        wrong(source.map_or_else(|other| io::Error::other(other.to_string()), |io| *io))
    })?;
    let local = server.server_addr().to_ip().unwrap_or(listen);
    thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            for request in server.incoming_requests() {
                let path = request.url().split('?').next().unwrap_or_default();
                let (code, kind, body) = match (request.method(), path) {
                    (Method::Get | Method::Head, "/metrics") => answer(&control, OPEN_METRICS),
                    (Method::Get | Method::Head, "/status") => answer(&control, JSON),
                    _ => (404, TEXT, "there is /metrics and /status\n".to_owned()),
                };
                let mut response = Response::from_string(body).with_status_code(code);
                if let Ok(header) = Header::from_bytes("Content-Type", kind) {
                    response.add_header(header);
                }
                // The client has gone.
                drop(request.respond(response));
            }
        })
        .map_err(wrong)?;
    Ok(local)
}

fn answer(control: &Control, kind: &'static str) -> (u16, &'static str, String) {
    let Some(status) = control.status() else {
        return (503, TEXT, "the gateway does not answer\n".to_owned());
    };
    if kind == JSON {
        return match serde_json::to_string_pretty(&status) {
            Ok(body) => (200, JSON, body + "\n"),
            Err(error) => (500, TEXT, format!("{error}\n")),
        };
    }
    (200, OPEN_METRICS, metrics::text(&status))
}
