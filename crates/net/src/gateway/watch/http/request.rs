//! Requests to the gateway's HTTP server (RFC 9112): from octets to what is asked.
//!
//! # Promises
//! - At most [`REQUEST_BYTES_MAX`] octets, their end and one piece are kept. Each octet is looked at a bounded
//!   number of times, in however many pieces they come.

use std::net::IpAddr;

/// The longest line and headers of a request together.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// The octets that end a request's line and headers.
const END: &[u8] = b"\r\n\r\n";

/// The state of a request after some of its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not all of it.
    More,
    /// More than is allowed.
    TooLong,
    /// All of it. Octets behind it are ignored.
    Done(HttpRequest),
}

/// A request's line and headers on their way in.
#[derive(Clone, Debug, Default)]
pub struct RequestReader {
    head: Vec<u8>,
}

impl RequestReader {
    /// Takes the next octets. After [`Progress::Done`] or [`Progress::TooLong`] there is nothing more to read.
    pub fn push(&mut self, octets: &[u8]) -> Progress {
        // The end may have begun in an earlier piece.
        let from = self.head.len().saturating_sub(END.len() - 1);
        self.head.extend_from_slice(octets);
        let rest = self.head.get(from..).unwrap_or_default();
        let end = rest.windows(END.len()).position(|four| four == END);
        match end.map(|end| from + end) {
            Some(end) if end <= REQUEST_BYTES_MAX => {
                let head = self.head.get(..end).unwrap_or_default();
                Progress::Done(HttpRequest(String::from_utf8_lossy(head).into_owned()))
            }
            None if self.head.len() < REQUEST_BYTES_MAX + END.len() => Progress::More,
            Some(_) | None => Progress::TooLong,
        }
    }
}

/// A request's line and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest(String);

/// A number in a query is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANumber;

impl HttpRequest {
    /// Its line and headers, without the blank line that ends them.
    pub fn head(&self) -> &str {
        &self.0
    }

    fn word(&self, index: usize) -> &str {
        let mut words = self
            .0
            .lines()
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace();
        words.nth(index).unwrap_or_default()
    }

    /// `GET`, `HEAD` or another.
    pub fn method(&self) -> &str {
        self.word(0)
    }

    /// The path that it asks for, without the query.
    pub fn path(&self) -> &str {
        let target = self.word(1);
        target.split_once('?').map_or(target, |(path, _)| path)
    }

    /// The number that its query gives to `name`, if it gives any.
    ///
    /// # Errors
    /// The value is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, NotANumber> {
        let query = self.word(1).split_once('?').map_or("", |(_, query)| query);
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let Some((_, value)) = pairs.find(|(key, _)| *key == name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| NotANumber)
    }

    /// Whether it can be meant for a server at the loopback: it names no host, an address, or `localhost`. A page
    /// of the web has to name its own host, even when its name server made that name point here.
    pub fn is_for_loopback(&self) -> bool {
        let headers = self
            .0
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let hosts = headers.filter(|(name, _)| name.trim().eq_ignore_ascii_case("host"));
        hosts
            .map(|(_, host)| without_port(host.trim()))
            .all(names_loopback)
    }
}

/// A host (RFC 3986, section 3.2.2) without its port.
fn without_port(host: &str) -> &str {
    // An IPv6 address is in brackets.
    let end = host
        .rfind(':')
        .filter(|end| host.rfind(']').is_none_or(|last| last < *end));
    end.and_then(|end| host.get(..end)).unwrap_or(host)
}

/// An address says nothing that a name server could have chosen.
fn names_loopback(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let is_address = bracketed.unwrap_or(host).parse::<IpAddr>().is_ok();
    let is_unnamed = host.is_empty();
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    is_address || is_unnamed || host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> HttpRequest {
        let whole = format!("{head}\r\n\r\n");
        match RequestReader::default().push(whole.as_bytes()) {
            Progress::Done(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pieces_make_the_same_request_wherever_they_are_cut() {
        let whole = b"GET /view?sequence=7 HTTP/1.1\r\nHost: [::1]:80\r\n\r\nmore";
        let mut reader = RequestReader::default();
        for (index, octet) in whole.iter().enumerate() {
            match reader.push(&[*octet]) {
                Progress::Done(request) => {
                    assert_eq!(index, whole.len() - 5);
                    assert_eq!((request.method(), request.path()), ("GET", "/view"));
                    assert_eq!(request.number("sequence"), Ok(Some(7)));
                    return;
                }
                other => assert_eq!(other, Progress::More),
            }
        }
        panic!("it has no end");
    }

    #[test]
    fn a_request_is_as_long_as_allowed_and_no_longer() {
        let head = |len: usize| [vec![b'a'; len], END.to_vec()].concat();
        let read = |octets: &[u8]| RequestReader::default().push(octets);
        assert!(matches!(read(&head(REQUEST_BYTES_MAX)), Progress::Done(_)));
        assert_eq!(read(&head(REQUEST_BYTES_MAX + 1)), Progress::TooLong);
        assert_eq!(read(&[b'a'; REQUEST_BYTES_MAX + 3]), Progress::More);
        assert_eq!(read(&[b'a'; REQUEST_BYTES_MAX + 4]), Progress::TooLong);
    }

    #[test]
    fn only_addresses_and_localhost_name_the_loopback() {
        let of = |value: &str| {
            let head = format!("GET / HTTP/1.1\r\nAccept: */*\r\nhOst: {value}\r\nX: y");
            request(&head).is_for_loopback()
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
            assert!(of(own), "{own}");
        }
        for foreign in [
            "evil.example:9490",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "]x:1",
            "notlocalhost",
            ".",
            "localhost\r\nHost: evil.example",
            "evil.example\r\nHost: localhost",
            "localhost\r\nHost : evil.example",
        ] {
            assert!(!of(foreign), "{foreign}");
        }
        assert!(
            request("GET / HTTP/1.0").is_for_loopback(),
            "old clients do not say"
        );
    }

    #[test]
    fn a_query_gives_numbers_or_is_wrong() {
        let number = |query| request(&format!("GET /?{query} HTTP/1.0")).number("peer");
        assert_eq!(number(""), Ok(None));
        assert_eq!(number("peers=1&x"), Ok(None));
        assert_eq!(number("a=b&peer=12"), Ok(Some(12)));
        for wrong in ["peer=", "peer=-1", "peer=1e9", "peer=99999999999999999999"] {
            assert_eq!(number(wrong), Err(NotANumber), "{wrong}");
        }
    }
}
