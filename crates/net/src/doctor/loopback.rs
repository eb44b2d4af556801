//! A UDP socket over loopback, as the carriers use it: buffers, batches, ECN.

use super::finding::Finding;
use crate::udp::{Batch, Offloads, Path, PortConfig, SocketBuffers, UdpPort};
use crate::wait::{Interest, wait};
use core::time::Duration;
use fulmar_proto::machine::Ecn;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// The wait for an answer; loopback answers within microseconds.
const PATIENCE: Duration = Duration::from_millis(200);

/// The offers of the kernel to a socket of ours, and the marks that pass between two.
pub(super) fn socket() -> Vec<Finding> {
    match pair() {
        Ok((sender, receiver)) => {
            let mut findings = vec![buffers(sender.buffers()), offloads(sender.offloads())];
            findings.push(marks(sender, receiver));
            findings
        }
        Err(error) => vec![Finding::bad(
            "UDP",
            error.to_string(),
            "let this process make UDP sockets; inside a container, give it a network",
        )],
    }
}

fn pair() -> io::Result<(UdpPort, UdpPort)> {
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let config = PortConfig::default();
    Ok((UdpPort::bind(local, config)?, UdpPort::bind(local, config)?))
}

fn buffers(buffers: SocketBuffers) -> Finding {
    const CHECK: &str = "socket buffers";
    let asked = buffers.asked;
    let found = format!("receive {}, send {}", buffers.receive, buffers.send);
    if buffers.is_limited() {
        let octets = asked.as_usize();
        let remedy = format!(
            "sysctl -w net.core.rmem_max={octets} net.core.wmem_max={octets}, and the same in \
             /etc/sysctl.d/fulmar.conf; smaller ones drop datagrams in bursts above some 100 Mbit/s"
        );
        Finding::poor(CHECK, format!("{found} of {asked}"), remedy)
    } else {
        Finding::good(CHECK, found)
    }
}

fn offloads(offloads: Offloads) -> Finding {
    const CHECK: &str = "UDP offloads";
    let Offloads {
        send_segments,
        receive_segments,
    } = offloads;
    let found = format!("send (GSO) {send_segments}, receive (GRO) {receive_segments} datagrams");
    if send_segments > 1 && receive_segments > 1 {
        Finding::good(CHECK, found)
    } else {
        let remedy = "Linux 5.0 or later has both; without, each datagram costs a system call more";
        Finding::poor(CHECK, found, remedy)
    }
}

/// Sends one datagram that may be marked, and checks the arriving one.
fn marks(mut sender: UdpPort, mut receiver: UdpPort) -> Finding {
    const CHECK: &str = "ECN";
    const REMEDY: &str = "without the ECN field congestion is seen by delay alone; look for rules that \
                          clear it (nft list ruleset)";
    match passes(&mut sender, &mut receiver) {
        Ok(Some(Ecn::Capable)) => Finding::good(CHECK, "sent and received"),
        Ok(Some(_)) => Finding::poor(CHECK, "the field is lost between two local sockets", REMEDY),
        Ok(None) => Finding::bad(
            CHECK,
            "a datagram to 127.0.0.1 does not arrive",
            "let loopback UDP pass (nft list ruleset), and set the device up: ip link set lo up",
        ),
        Err(error) => Finding::bad(CHECK, error.to_string(), REMEDY),
    }
}

fn passes(sender: &mut UdpPort, receiver: &mut UdpPort) -> io::Result<Option<Ecn>> {
    const OCTETS: &[u8] = b"doctor";
    let path = Path::udp(receiver.local()?, None);
    sender.buffer().extend_from_slice(OCTETS);
    sender.send(&path, OCTETS.len(), Ecn::Capable);
    sender.flush();
    let source = [(receiver.as_fd(), Interest::Readable)];
    wait(&source, Some(PATIENCE), &mut Vec::new())?;
    let mut batch = Batch::default();
    receiver.receive(&mut batch)?;
    let from = sender.local()?;
    let ours = batch.trains().find(|train| train.from == from);
    Ok(ours.map(|train| train.ecn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;
    use fulmar_proto::units::ByteCount;

    #[test]
    fn cut_buffers_name_the_two_limits_and_the_octets_to_set() {
        let cut = SocketBuffers {
            asked: ByteCount(4_194_304),
            receive: ByteCount(212_992),
            send: ByteCount(4_194_304),
        };
        let finding = buffers(cut);
        assert_eq!(finding.verdict, FindingVerdict::Poor);
        let remedy = finding.remedy.unwrap();
        assert!(remedy.contains("rmem_max=4194304 net.core.wmem_max=4194304"));
    }

    #[test]
    fn a_datagram_crosses_with_its_ecn_field() {
        let (mut sender, mut receiver) = pair().unwrap();
        let seen = passes(&mut sender, &mut receiver).unwrap();
        assert_eq!(seen, Some(Ecn::Capable));
    }

    #[test]
    fn one_missing_offload_is_poor() {
        let half = Offloads {
            send_segments: 64,
            receive_segments: 1,
        };
        assert_eq!(offloads(half).verdict, FindingVerdict::Poor);
    }
}
