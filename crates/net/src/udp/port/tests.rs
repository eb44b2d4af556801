use super::*;
use crate::wait::{Interest, wait};

#[test]
fn bursts_grow_with_the_rate_between_two_bounds() {
    for (rate, burst) in [
        (0, 16),
        (384_000_000, 16),
        (407_999_999, 16),
        (408_000_000, 17),
        (1_000_000_000, 41),
        (1_536_000_000, 64),
        (u64::MAX, 64),
    ] {
        let config = PortConfig::for_rate(Bitrate::from_bits_per_second(rate));
        assert_eq!(config.burst, burst, "{rate} bit/s");
    }
}

/// The datagrams that have arrived at `port`, which begin with their number.
fn numbers(port: &mut UdpPort, batch: &mut Batch) -> Vec<(u32, usize)> {
    let mut numbers = Vec::new();
    while port.receive(batch).unwrap() {
        for datagram in batch.trains().flat_map(|train| train.datagrams()) {
            let number = datagram.first_chunk().copied().unwrap();
            numbers.push((u32::from_be_bytes(number), datagram.len()));
        }
    }
    numbers
}

#[test]
fn a_datagram_that_waited_in_the_kernel_says_how_long() {
    const WAITED: Duration = Duration::from_millis(5);
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let clock = crate::clock::Clock::start();
    let mut sender = UdpPort::bind(any, PortConfig::default()).unwrap();
    let mut receiver = UdpPort::bind(any, PortConfig::default()).unwrap();
    let path = Path::udp(receiver.local().unwrap(), None);
    sender.buffer().extend_from_slice(b"early");
    sender.send(&path, 5, Ecn::Capable);
    sender.flush();
    let sent = clock.now();
    // Of another size, so that the kernel does not join them.
    sender.buffer().extend_from_slice(b"a late one");
    while clock.now().saturating_since(sent) < WAITED {}
    sender.send(&path, 10, Ecn::Congested);
    sender.flush();
    let mut batch = Batch::default();
    assert!(receiver.receive(&mut batch).unwrap());
    let trains: Vec<_> = batch.trains().collect();
    let [early, late] = &trains[..] else {
        panic!("two datagrams: {trains:?}");
    };
    assert!(early.waited >= late.waited + WAITED, "{trains:?}");
    assert_eq!((early.ecn, late.ecn), (Ecn::Capable, Ecn::Congested));
    assert_eq!(early.to, Some(path.remote.ip()));
    assert!(!receiver.receive(&mut batch).unwrap());
}

#[test]
fn more_than_is_held_back_leaves_in_whole_bursts_and_in_order() {
    const LEN: usize = 1_000;
    const COUNT: u32 = 300;
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let config = PortConfig::default();
    let mut sender = UdpPort::bind(any, config).unwrap();
    let mut receiver = UdpPort::bind(any, config).unwrap();
    let path = Path::udp(receiver.local().unwrap(), None);
    let whole = config.burst.min(sender.offloads().send_segments) as u64;
    let mut batch = Batch::default();
    let mut arrived = Vec::new();
    for number in 0..COUNT {
        let octets = sender.buffer();
        octets.extend(number.to_be_bytes());
        octets.resize(octets.len() + LEN - 4, 7);
        sender.send(&path, LEN, Ecn::NotCapable);
        assert!(sender.can_send());
        assert!(sender.outbox.waiting() < FLUSH_AT);
        let sent = sender.counters().sent;
        assert!(sent.is_multiple_of(whole), "{sent} in bursts of {whole}");
        arrived.extend(numbers(&mut receiver, &mut batch));
    }
    let early = sender.counters().sent;
    assert!(early > 0 && early < u64::from(COUNT), "{early}");
    sender.flush();
    assert_eq!(sender.counters().sent, u64::from(COUNT));
    while arrived.len() < COUNT as usize {
        let mut ready = Vec::new();
        let patience = Some(Duration::from_secs(20));
        let sources = [(receiver.as_fd(), Interest::Readable)];
        wait(&sources, patience, &mut ready).unwrap();
        assert!(ready[0].readable, "{} of {COUNT} came", arrived.len());
        arrived.extend(numbers(&mut receiver, &mut batch));
    }
    let all: Vec<(u32, usize)> = (0..COUNT).map(|number| (number, LEN)).collect();
    assert_eq!(arrived, all);
}
