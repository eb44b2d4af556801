//! What only the kernel knows of a TCP connection, and how to end one.

pub(super) use crate::keeper::unacknowledged;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Sets what every proxied stream needs: no waiting, no delay of small writes, and news of a host
/// that is gone.
///
/// # Errors
/// The socket is broken.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    const QUIET: Duration = Duration::from_secs(120);
    const BETWEEN: Duration = Duration::from_secs(15);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(QUIET)
        .with_interval(BETWEEN)
        .with_retries(8);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// From here on, a gateway that dies closes `stream` with a reset: the kernel would else say that
/// everything was sent.
pub(super) fn die_with_reset(stream: &TcpStream) {
    // Without it, a dead gateway's client is misled, which is no reason to refuse it now.
    drop(SockRef::from(stream).set_linger(Some(Duration::ZERO)));
}

/// Ends `stream` in the ordinary way: what was written still leaves, and then an end, also if this
/// gateway dies. Dropping it closes it.
pub(super) fn finish(stream: &TcpStream) {
    drop(SockRef::from(stream).set_linger(None));
    // One that is over has nothing left to be said.
    drop(stream.shutdown(Shutdown::Write));
}

/// Closes `stream` so that the other host sees a reset, not an end.
pub(super) fn reset(stream: TcpStream) {
    // Without it, the host sees an end: less clear, and no worse.
    drop(SockRef::from(&stream).set_linger(Some(Duration::ZERO)));
    drop(stream);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn octets_that_the_other_host_has_are_not_counted_and_others_are() {
        let (mut client, mut server) = pair();
        client.write_all(&[7; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
        assert_eq!(unacknowledged(&client).unwrap(), 0);
        // Nobody reads: the windows fill, and what is beyond them waits here.
        client.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(len) = client.write(&[7; 8_192]) {
            written += len as u64;
        }
        let waiting = unacknowledged(&client).unwrap();
        assert!(waiting > 0 && waiting < written, "{waiting} of {written}");
    }

    #[test]
    fn what_was_finished_ends_in_order_though_its_gateway_dies() {
        let (client, mut server) = pair();
        die_with_reset(&client);
        (&client).write_all(b"all").unwrap();
        finish(&client);
        // What a kill does, when nobody else has the socket.
        drop(client);
        let mut all = Vec::new();
        server.read_to_end(&mut all).expect("no reset");
        assert_eq!(all, b"all");
    }

    #[test]
    fn a_reset_is_seen_as_one() {
        let (client, mut server) = pair();
        reset(client);
        let told = server.read(&mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ConnectionReset);
    }
}
