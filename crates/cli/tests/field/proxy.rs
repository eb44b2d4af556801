//! SOCKS5 for clients that do not speak it.

use crate::rig::Namespace;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// A port on the client's loopback whose next connection goes to `to` through the proxy.
pub(super) fn tunnel(client: &Namespace, proxy: (IpAddr, u16), to: SocketAddr) -> u16 {
    let listener = client.within(|| TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let mut far = client.within(|| TcpStream::connect(proxy).expect("the proxy listens"));
    thread::spawn(move || {
        // RFC 1928: no authentication; CONNECT.
        let mut ask = vec![5, 1, 0, 5, 1, 0];
        match to.ip() {
            IpAddr::V4(ip) => ask.extend([&[1][..], &ip.octets()].concat()),
            IpAddr::V6(ip) => ask.extend([&[4][..], &ip.octets()].concat()),
        }
        ask.extend(to.port().to_be_bytes());
        far.write_all(&ask).expect("it is taken");
        let mut answer = [0; 6];
        far.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..5], [5, 0, 5, 0, 0], "the proxy refused");
        let bound = if answer[5] == 1 { 6 } else { 18 };
        far.read_exact(&mut vec![0; bound]).expect("the rest of it");
        let (mut near, _) = listener.accept().expect("a client");
        let mut back = (
            far.try_clone().expect("room"),
            near.try_clone().expect("room"),
        );
        let returning = thread::spawn(move || drop(std::io::copy(&mut back.0, &mut back.1)));
        // The client's breaking off is an end as well.
        drop(std::io::copy(&mut near, &mut far));
        drop(far.shutdown(Shutdown::Write));
        returning.join().expect("the way back");
    });
    port
}
