//! Any octets as a request to a gateway's HTTP server, in one piece and in pieces: the same request, or
//! none; a request that a web page could send is never taken for a request of this host's own.

use fulmar_net::gateway::http::request::{HttpRequest, Progress, REQUEST_BYTES_MAX, RequestReader};
use std::net::IpAddr;

/// The first octet says how long the pieces are; the rest is sent.
///
/// # Panics
/// A law is broken.
pub(crate) fn holds(octets: &[u8]) {
    let Some((step, octets)) = octets.split_first() else {
        return;
    };
    let whole = RequestReader::default().push(octets);
    if let Progress::Done(request) = &whole {
        is_sound(request);
    }
    let mut reader = RequestReader::default();
    let mut sent = 0;
    for piece in octets.chunks(usize::from(*step) + 1) {
        sent += piece.len();
        match reader.push(piece) {
            Progress::More => assert!(sent < REQUEST_BYTES_MAX + 4),
            // Octets after the end are read in another piece, or not at all.
            Progress::Done(request) => return assert_eq!(Progress::Done(request), whole),
            // The end may be in the piece that made it too long.
            Progress::TooLong => {
                assert!(sent > REQUEST_BYTES_MAX);
                return assert_eq!(whole, Progress::TooLong);
            }
        }
    }
    assert_eq!(whole, Progress::More);
}

fn is_sound(request: &HttpRequest) {
    for word in [request.method(), request.path()] {
        assert!(
            !word.contains(|c: char| c.is_ascii_whitespace()),
            "{word:?}"
        );
    }
    assert!(!request.path().contains('?'));
    if let Ok(Some(number)) = request.number("peer") {
        let asked = format!("{request:?}");
        // A number may be written with a sign and with noughts before it.
        assert!(asked.contains(&number.to_string()), "{asked}");
    }
    // A browser sends a page's own host, in one line, as here.
    let hosts: Vec<String> = hosts(request);
    if request.is_for_loopback() {
        for host in hosts {
            let named = host.to_ascii_lowercase();
            let is_local = named.contains("localhost") || host.is_empty();
            let is_address = host.parse::<IpAddr>().is_ok()
                || host.rsplit_once(':').is_some_and(|(ip, _)| {
                    ip.is_empty() || ip.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
                })
                || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
            assert!(is_local || is_address, "{host:?}");
        }
    }
}

fn hosts(request: &HttpRequest) -> Vec<String> {
    let lines = request.head().lines().skip(1);
    let lines = lines.filter_map(|line| line.strip_prefix("Host:"));
    lines.map(|host| host.trim().to_owned()).collect()
}
