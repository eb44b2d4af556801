//! The file over plain UDP: datagrams at the link's rate, no acknowledgement, no parity.
//!
//! The kernel drops datagrams that its checksum finds damaged, so the link is told to do the same. Each
//! datagram starts with its offset, so that missing ones are known; nothing else is added.

use super::link::{DemoLink, LOOPBACK};
use super::plan::{Condition, MTU, OVERHEAD};
use super::row::Moved;
use super::timeline::Timeline;
use anyhow::{Context, Result, anyhow};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::DamagePolicy;
use fulmar_net::transfer::Stop;
use fulmar_net::wait::{precise_timers, wait};
use fulmar_proto::transport::parts::Pacer;
use fulmar_proto::units::Duration;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

const OFFSET_BYTES: usize = 8;
/// The silence after the last datagram that is taken for the end: 25 times the propagation delay, and more
/// than the queue holds.
const SILENCE: Duration = Duration::from_millis(500);

fn receive(
    clock: Clock,
    socket: UdpSocket,
    copy: PathBuf,
    sent_all: Stop,
    timeline: Arc<Timeline>,
) -> JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let file = File::create(&copy).with_context(|| format!("creating {}", copy.display()))?;
        let mut datagram = vec![0; MTU.as_usize()];
        loop {
            match socket.recv(&mut datagram) {
                Ok(len) => {
                    let octets = datagram.get(..len).unwrap_or_default();
                    let Some((offset, octets)) = octets.split_first_chunk::<OFFSET_BYTES>() else {
                        continue;
                    };
                    let offset = u64::from_be_bytes(*offset);
                    file.write_all_at(octets, offset)
                        .with_context(|| format!("writing {}", copy.display()))?;
                    timeline.delivered(clock.now(), offset..offset + octets.len() as u64);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if sent_all.is_requested() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error).context("receiving plain UDP"),
            }
        }
    })
}

fn send(
    clock: Clock,
    file: &Path,
    to: SocketAddr,
    pacer: &mut Pacer,
    timeline: &Timeline,
    stop: &Stop,
) -> Result<()> {
    let socket = UdpSocket::bind(LOOPBACK).context("a port")?;
    let file = File::open(file).with_context(|| format!("reading {}", file.display()))?;
    let mut file = BufReader::new(file);
    let payload = MTU.saturating_sub(OVERHEAD).as_usize() - OFFSET_BYTES;
    let mut offset = 0_u64;
    let mut datagram = Vec::with_capacity(MTU.as_usize());
    while !stop.is_requested() {
        datagram.clear();
        datagram.extend_from_slice(&offset.to_be_bytes());
        let read = (&mut file)
            .take(payload as u64)
            .read_to_end(&mut datagram)?;
        if read == 0 {
            return Ok(());
        }
        let end = offset + read as u64;
        timeline.submitted(clock.now(), &(offset..end));
        while !pacer.allows(clock.now()) {
            let pause = pacer.next_at().saturating_since(clock.now());
            wait(&[], Some(pause), &mut Vec::new()).context("pacing")?;
        }
        socket.send_to(&datagram, to).context("sending plain UDP")?;
        pacer.on_sent(clock.now(), datagram.len());
        offset = end;
    }
    Err(anyhow!("stopped"))
}

/// Sends `file` through the link; `timeline` measures.
///
/// # Errors
/// A socket or the disk fails.
pub(crate) fn run(
    condition: Condition,
    file: &Path,
    directory: &Path,
    timeline: &Arc<Timeline>,
    stop: &Stop,
) -> Result<Moved> {
    let clock = Clock::start();
    let socket = UdpSocket::bind(LOOPBACK).context("a port")?;
    socket
        .set_read_timeout(Some(SILENCE))
        .context("a timeout")?;
    let target = socket.local_addr().context("the receiver's address")?;
    let copy = directory.join("copy");
    let sent_all = Stop::default();
    let receiving = receive(
        clock,
        socket,
        copy.clone(),
        sent_all.clone(),
        Arc::clone(timeline),
    );
    let link = DemoLink::start(clock, condition, DamagePolicy::Drop, target)?;
    drop(precise_timers());
    let rate = condition.config().rate.context("the preset has a rate")?;
    let mut pacer = Pacer::new(rate, Duration::ZERO, OVERHEAD);
    let sent = send(clock, file, link.address(), &mut pacer, timeline, stop);
    sent_all.request();
    receiving
        .join()
        .map_err(|_| anyhow!("the receiver panicked"))??;
    let link = link.end()?;
    Ok(Moved {
        link,
        copy: Some(copy),
        is_cut_off: false,
        error: sent.err().map(|error| format!("{error:#}")),
    })
}
