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

/// Two datagrams of which the second was sent `apart` later, with what the kernel tells of them.
fn waits_of_two(sender: &mut UdpPort, receiver: &mut UdpPort, apart: Duration) -> [Duration; 2] {
    let clock = crate::clock::Clock::start();
    let path = Path::udp(receiver.local().unwrap(), None);
    sender.buffer().extend_from_slice(b"early");
    sender.send(&path, 5, Ecn::Capable);
    sender.flush();
    let sent = clock.now();
    // Of another size, so that the kernel does not join them.
    sender.buffer().extend_from_slice(b"a late one");
    while clock.now().saturating_since(sent) < apart {}
    sender.send(&path, 10, Ecn::Congested);
    sender.flush();
    let mut batch = Batch::default();
    assert!(receiver.receive(&mut batch).unwrap());
    let trains: Vec<_> = batch.trains().collect();
    let [early, late] = &trains[..] else {
        panic!("two datagrams: {trains:?}");
    };
    assert_eq!((early.ecn, late.ecn), (Ecn::Capable, Ecn::Congested));
    assert_eq!(early.to, Some(path.remote.ip()));
    let waits = [early.waited, late.waited];
    assert!(!receiver.receive(&mut batch).unwrap());
    waits
}

#[test]
fn a_datagram_that_waited_in_the_kernel_says_how_long() {
    const APART: Duration = Duration::from_millis(5);
    const TRIES: usize = 2_000;
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let mut sender = UdpPort::bind(any, PortConfig::default()).unwrap();
    let mut receiver = UdpPort::bind(any, PortConfig::default()).unwrap();
    // The kernel notes no times for anybody until a moment after a first socket asked for them.
    let told = (0..TRIES).any(|_| {
        let [early, late] = waits_of_two(&mut sender, &mut receiver, APART);
        early >= late + APART
    });
    assert!(told);
}

#[test]
fn what_the_kernel_tells_of_a_datagram_is_whole_in_every_batch() {
    const COUNT: usize = 7;
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let mut sender = UdpPort::bind(any, PortConfig::default()).unwrap();
    let mut receiver = UdpPort::bind(any, PortConfig::default()).unwrap();
    let path = Path::udp(receiver.local().unwrap(), None);
    let mut batch = Batch::default();
    // The kernel says least of a datagram that nothing joined, and most of those that it joined.
    for count in [1, COUNT, 1, COUNT] {
        let mut sent = 0;
        for _ in 0..20 {
            for _ in 0..count {
                // Neighbours differ, so that only those of one burst are joined.
                let len = 100 + sent;
                let octets = sender.buffer();
                octets.resize(octets.len() + len, 7);
                sender.send(&path, len, Ecn::Capable);
            }
            sender.flush();
            sent += 1;
        }
        let mut came = 0;
        while came < sent * count {
            assert!(receiver.receive(&mut batch).unwrap(), "{came}");
            for train in batch.trains() {
                assert_eq!(
                    (train.from, train.to),
                    (sender.local().unwrap(), Some(path.remote.ip()))
                );
                assert_eq!(train.ecn, Ecn::Capable);
                came += train.datagrams().count();
            }
        }
        assert_eq!(came, sent * count);
    }
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
