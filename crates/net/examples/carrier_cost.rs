//! The processor time of a gigabyte by each carrier with ports, over loopback: what segmentation offload saves.
//!
//! ```sh
//! cargo run --release -p fulmar-net --example carrier_cost
//! ```
//!
//! A line for each carrier and run: octets that arrived, datagrams to a system call, and processor seconds of the sending and
//! of the receiving thread for a gigabyte of them. Loopback computes no checksum, so these are the prices of calls alone.

use fulmar_net::udp::{Batch, Carrier, Path, PortConfig, PortProtocol, UdpPort};
use fulmar_net::wait::{Interest, wait};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::AsFd;

const OCTETS: usize = 1_472;
const DATAGRAMS: usize = 400_000;
/// Datagrams in one go, which the receiver's buffer holds.
const BURST: usize = 64;
const RUNS: usize = 3;

/// Processor seconds of this thread.
fn spent() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

fn run(carrier: Carrier, protocol: PortProtocol) -> std::io::Result<()> {
    let config = PortConfig {
        protocol,
        takes_unchecked: true,
        burst: BURST,
        ..PortConfig::default()
    };
    let local = ([127, 0, 0, 1], 0).into();
    let mut sender = UdpPort::bind(local, config)?;
    let mut receiver = UdpPort::bind(local, config)?;
    let path = Path {
        carrier,
        ..Path::udp(receiver.local()?, None)
    };
    let mut batch = Batch::default();
    let (mut sending, mut receiving) = (0.0, 0.0);
    for _ in 0..DATAGRAMS / BURST {
        let begun = spent();
        for _ in 0..BURST {
            let longer = sender.buffer().len() + OCTETS;
            sender.buffer().resize(longer, 7);
            sender.send(&path, OCTETS, Ecn::NotCapable);
        }
        sender.flush();
        sending += spent() - begun;
        let begun = spent();
        while receiver.receive(&mut batch)? {}
        receiving += spent() - begun;
        let source = [(receiver.as_fd(), Interest::Readable)];
        wait(&source, Some(Duration::ZERO), &mut Vec::new())?;
    }
    let (sent, received) = (sender.counters(), receiver.counters());
    let gigabytes = received.received_bytes as f64 / 1e9;
    let bursts = sent.bursts.max(1);
    let a_call = if sent.bursts == 0 {
        1
    } else {
        sent.sent / bursts
    };
    println!(
        "{carrier:?}: {:.3} GB arrived of {:.3}, {a_call} datagrams to a call, {:.3} s/GB sending, {:.3} s/GB receiving",
        gigabytes,
        sent.sent_bytes as f64 / 1e9,
        sending / gigabytes,
        receiving / gigabytes
    );
    Ok(())
}

fn main() -> std::io::Result<()> {
    for _ in 0..RUNS {
        run(Carrier::Udp, PortProtocol::Udp)?;
        run(Carrier::UdpNoChecksum, PortProtocol::Udp)?;
        if let Err(error) = run(Carrier::UdpLite, PortProtocol::UdpLite) {
            println!("UdpLite: {error}");
        }
    }
    Ok(())
}
