//! Both ends in one thread, the test's own: a foreign loop that polls descriptors.

use crate::link::{ANY, RATE, keys, octets};
use fulmar::{Config, Driver, Endpoint, Stream};
use fulmar_net::wait::{Interest, wait};
use fulmar_proto::units::Duration;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;

/// Sleeps as a foreign loop does, until a descriptor is readable or a deadline has come, and steps both.
#[expect(
    clippy::disallowed_methods,
    reason = "a foreign loop goes by the clock of the system"
)]
fn turn(drivers: &mut [Driver; 2]) {
    let mut ready = Vec::new();
    let next = drivers.iter().filter_map(Driver::next_deadline).min();
    let timeout = next.map(|at| at.saturating_duration_since(std::time::Instant::now()));
    let sources = drivers
        .each_ref()
        .map(|driver| (driver.as_fd(), Interest::Readable));
    wait(&sources, timeout, &mut ready).expect("the sockets hold");
    for driver in drivers {
        driver.step(Some(Duration::ZERO)).expect("the sockets hold");
    }
}

fn would_block<T>(result: std::io::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            None
        }
    }
}

#[test]
fn a_transfer_without_a_thread() {
    let [called, calling] = keys();
    let config = Config::new(called.clone())
        .peer(calling.public())
        .rate(RATE);
    let (server, first) = Endpoint::without_thread(ANY, config).unwrap();
    let (client, second) = Endpoint::without_thread(ANY, Config::new(calling).rate(RATE)).unwrap();
    let mut drivers = [first, second];
    let listener = server.listen().unwrap();
    let mut sending = client
        .connect(server.local_addr(), &called.public())
        .unwrap();
    let mut receiving: Option<Stream> = None;
    let sent = octets(2_000_000);
    let (mut written, mut came, mut room) = (0, Vec::new(), vec![0; 65_536]);
    let (mut finished, mut ended) = (false, false);
    while !finished || !ended {
        if written < sent.len() {
            written += would_block(sending.write(&sent[written..])).unwrap_or(0);
        } else {
            finished |= would_block(sending.finish()).is_some();
        }
        if receiving.is_none() {
            receiving = would_block(listener.accept(None));
        }
        if let Some(stream) = &mut receiving
            && let Some(len) = would_block(stream.read(&mut room))
        {
            came.extend_from_slice(&room[..len]);
            ended |= len == 0;
        }
        turn(&mut drivers);
    }
    assert!(came == sent);
    // Dropped without a thread: the last word leaves in further steps.
    drop((sending, receiving, client, server));
    while !drivers.iter().all(Driver::is_over) {
        turn(&mut drivers);
    }
    assert_eq!(
        listener.accept(None).unwrap_err().kind(),
        ErrorKind::NotConnected
    );
}
