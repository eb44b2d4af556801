//! Facts of a TCP connection that only the kernel knows, and a way to end one.

pub(in crate::gateway) use crate::keeper::unacknowledged;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Sets what every proxied stream needs: no waiting, no delay of small writes, and news of a host
/// that is gone.
///
/// # Errors
/// The socket is broken.
pub(in crate::gateway) fn prepare(stream: &TcpStream) -> io::Result<()> {
    const QUIET: Duration = Duration::from_secs(120);
    const BETWEEN: Duration = Duration::from_secs(15);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    // An urgent octet is one of the stream (RFC 6093, section 2.2): otherwise the kernel would take it out.
    SockRef::from(stream).set_out_of_band_inline(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(QUIET)
        .with_interval(BETWEEN)
        .with_retries(8);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// The destination of a client's connection before the kernel's rules redirected it here; `None` if the kernel does not say, or
/// it was meant for this port.
pub(in crate::gateway) fn original_destination(stream: &TcpStream) -> Option<SocketAddr> {
    let local = stream.local_addr().ok()?;
    let socket = SockRef::from(stream);
    let original = match local {
        SocketAddr::V4(_) => socket.original_dst_v4(),
        SocketAddr::V6(_) => socket.original_dst_v6(),
    };
    let original = original.ok()?.as_socket()?;
    (original != local).then_some(original)
}

/// Makes the kernel close `stream` with a reset if the gateway dies: otherwise the other host would see an
/// ordinary end, as if everything had been sent.
pub(in crate::gateway) fn die_with_reset(stream: &TcpStream) {
    // Without it, a dead gateway's client is misled, which is no reason to refuse it now.
    drop(SockRef::from(stream).set_linger(Some(Duration::ZERO)));
}

/// Whether the other host has ended its direction, or the connection is over. What it sent before may still be unread.
pub(in crate::gateway) fn has_ended(stream: &TcpStream) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut asked = [PollFd::new(stream, PollFlags::RDHUP)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut asked, Some(&at_once)));
    ready.is_ok_and(|count| count > 0)
}

/// Ends `stream` in the ordinary way: written octets still leave, and then an end, even if this
/// gateway dies. Dropping it closes it.
pub(in crate::gateway) fn finish(stream: &TcpStream) {
    /// The most reads, for more than a client sends ahead of an answer.
    const READS_MAX: usize = 64;
    drop(SockRef::from(stream).set_linger(None));
    // A connection that is over has nothing left to send.
    drop(stream.shutdown(Shutdown::Write));
    // A connection closed with unread octets would be reset, and the other host might miss the last octets. This comes
    // after our own end, by which the next gateway knows that the last word was sent.
    let mut octets = [0; 4_096];
    for _ in 0..READS_MAX {
        match rustix::net::recv(stream, &mut octets, RecvFlags::DONTWAIT) {
            Ok((1.., _)) => {}
            Ok(_) | Err(_) => break,
        }
    }
}

/// Closes `stream` so that the other host sees a reset, not an end.
pub(in crate::gateway) fn reset(stream: TcpStream) {
    // Without it, the other host sees an end, which is less clear and no worse.
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
    fn an_urgent_octet_stays_in_the_stream() {
        let (mut client, mut server) = pair();
        prepare(&server).unwrap();
        server.set_nonblocking(false).unwrap();
        client.write_all(b"before").unwrap();
        SockRef::from(&client).send_out_of_band(b"!").unwrap();
        client.write_all(b"behind").unwrap();
        drop(client);
        let mut came = Vec::new();
        server.read_to_end(&mut came).unwrap();
        assert_eq!(came, b"before!behind");
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
    fn the_last_word_arrives_though_the_other_host_s_was_not_read() {
        let (client, mut server) = pair();
        server.write_all(b"more than was read").unwrap();
        while client.peek(&mut [0; 100]).unwrap() < 18 {}
        (&client).write_all(b"no").unwrap();
        finish(&client);
        drop(client);
        let mut all = Vec::new();
        server.read_to_end(&mut all).expect("no reset");
        assert_eq!(all, b"no");
    }

    #[test]
    fn an_end_is_seen_behind_octets_that_were_not_read() {
        let (client, mut server) = pair();
        server.write_all(b"octets").unwrap();
        client.peek(&mut [0; 1]).unwrap();
        assert!(!has_ended(&client));
        server.shutdown(Shutdown::Write).unwrap();
        // On a loopback the end arrives soon, but not at once.
        let clock = crate::clock::Clock::start();
        while !has_ended(&client) {
            assert!(clock.now().as_nanos() < 60_000_000_000, "it never came");
            std::thread::yield_now();
        }
        assert_eq!((&client).read(&mut [0; 100]).unwrap(), 6);
    }

    #[test]
    fn a_reset_is_seen_as_one() {
        let (client, mut server) = pair();
        reset(client);
        let told = server.read(&mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ConnectionReset);
    }
}
