//! One connection that always has data to send, over a bottleneck.

use super::{Bottleneck, Medium};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{ConnectionConfig, ConnectionId, PathRate, RateSource};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;

/// The rate of [`MEDIUM`].
pub(crate) const LINK: Bitrate = Bitrate::from_bits_per_second(10_000_000);
/// The payload's share of a packet.
const PAYLOAD_SHARE: f64 = 1460.0 / 1500.0;

/// 10 mbit with 20 ms each way.
pub(crate) const MEDIUM: Medium = Medium {
    rate: LINK,
    queue_packets: 100,
    delay: Duration::from_millis(20),
    jitter: Duration::ZERO,
    loss: 0.0,
    down: false,
};

pub(crate) struct Bulk {
    pub(crate) link: Bottleneck,
    pub(crate) id: ConnectionId,
}

impl Bulk {
    pub(crate) fn new(rate: RateSource, medium: Medium, mode: Mode) -> Self {
        let mut link = Bottleneck::with_rate(rate, medium);
        let id = link.connect(ConnectionConfig {
            mode,
            send_buffer_bytes: 64 << 20,
            give_up_after: Duration::from_secs(3600),
            ..ConnectionConfig::default()
        });
        Self { link, id }
    }

    /// The share of the medium's capacity that arrives in `span`.
    pub(crate) fn fraction(&mut self, span: Duration) -> f64 {
        let before = self.link.received_bytes();
        let until = self.link.now + span;
        while self.link.now < until {
            self.link.write(self.id, 4 << 20);
            self.link.run(Duration::from_millis(50));
        }
        let got = (self.link.received_bytes() - before) as f64;
        let medium = self.link.medium;
        let rate = medium.rate.as_bits_per_second() as f64 / 8.0;
        got / (rate * span.as_secs_f64() * (1.0 - medium.loss) * PAYLOAD_SHARE)
    }

    pub(crate) fn rate(&self) -> PathRate {
        let rate = self.link.end(0).path_rate(PathId(0));
        rate.expect("the path has a connection")
    }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
