//! The statistical laws of the channel's models, through its public face.
//!
//! Method: a fixed seed, many packets, and an interval derived from the law itself. `Z` standard
//! errors are allowed throughout: a correct model leaves the interval in one draw of a seed out of
//! 16,000 for one comparison. Seeds are part of the test; a failure names the comparison.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read is a failed case"
)]

mod arrival;
mod bits;
mod dama;
mod determinism;
mod fading;
mod fading_packets;
mod fading_presets;
mod loss;
mod outages;
mod own;
mod rate_and_queue;
mod replay;
mod series;
mod statistics;

use fulmar_channel::{Channel, ChannelConfig, ChannelDropReason, ChannelVerdict, Delivery};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// A full-size packet, IP header included.
const PACKET: ByteCount = ByteCount(1500);

fn channel(config: ChannelConfig, seed: u64) -> Channel {
    Channel::new(config, &Rng::from_seed(seed)).expect("the case describes a valid channel")
}

/// Hands over `count` packets of 1500 octets, `gap` apart, the first at the start of the run.
fn run(channel: &mut Channel, count: u64, gap: Duration) -> Vec<ChannelVerdict> {
    let mut now = Instant::START;
    (0..count)
        .map(|_| {
            let verdict = channel.admit(now, PACKET);
            now += gap;
            verdict
        })
        .collect()
}

fn delivery(verdict: &ChannelVerdict) -> Option<&Delivery> {
    match verdict {
        ChannelVerdict::Deliver(delivery) => Some(delivery),
        ChannelVerdict::Drop(_) | ChannelVerdict::Waits => None,
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

fn with_loss(loss: &str) -> ChannelConfig {
    ChannelConfig {
        loss: loss.parse().unwrap(),
        ..ChannelConfig::default()
    }
}

/// Whether each of `count` packets, 1 ms apart, is lost.
fn losses(loss: &str, seed: u64, count: u64) -> Vec<bool> {
    run(&mut channel(with_loss(loss), seed), count, MILLISECOND)
        .iter()
        .map(is_lost)
        .collect()
}

fn is_lost(verdict: &ChannelVerdict) -> bool {
    *verdict == ChannelVerdict::Drop(ChannelDropReason::Loss)
}
