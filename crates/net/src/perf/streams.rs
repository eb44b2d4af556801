//! The streams of a test: their number, the port of each, the settings of its connection, and what is said of each.

use super::PERF_DATA_PORT;
use super::report::PerfError;
use super::test::Test;
use fulmar_proto::transport::aerotp::ConnectionConfig;
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Port;

/// The span whose octets may wait to be sent for the first time: as much as the streams together send in it, or two
/// packets of each. It is part of the delay.
const AHEAD: Duration = Duration::from_millis(2);
/// The same where the rate is found, which takes that there is always something to send: so much of what was found, or
/// so many packets of each stream, and so many before.
const AHEAD_FOUND: Duration = Duration::from_millis(10);
const AHEAD_FOUND_PACKETS: usize = 4;
const AHEAD_FIRST_PACKETS: usize = 16;
/// The octets of all streams that may wait to be sent at any rate.
const AHEAD_MAX: usize = 4 << 20;
/// The least window and send buffer of a stream, enough for 300 kB in flight. Otherwise the streams share one
/// connection's.
const WINDOW_TPDUS_MIN: u16 = 256;
const SEND_BUFFER_BYTES_MIN: usize = 256 << 10;

/// The port to which the messages of `stream` go.
pub(super) const fn port_of(stream: u8) -> Port {
    Port(PERF_DATA_PORT.0 + stream as u16)
}

/// The stream whose messages come to `port`, in a test of `streams`.
pub(super) fn stream_at(port: Port, streams: u8) -> Option<u8> {
    let stream = port.0.checked_sub(PERF_DATA_PORT.0)?;
    let stream = u8::try_from(stream).ok()?;
    (stream < streams).then_some(stream)
}

/// The octets of each of `streams` streams that may wait to be sent for the first time, where the rate is found. They are
/// as many as can be before there is one.
pub(super) fn ahead_of_found(streams: usize, rate: Option<Bitrate>, packet: usize) -> usize {
    rate.map_or(AHEAD_FIRST_PACKETS * packet, |rate| {
        let ahead = rate.bytes_in(AHEAD_FOUND).as_usize() / streams.max(1);
        ahead.max(AHEAD_FOUND_PACKETS * packet)
    })
}

/// The settings of each stream's connection, over a link that they share, of `rate` if it was told.
pub(super) fn lane_config(
    test: &Test,
    rate: Option<Bitrate>,
    base: ConnectionConfig,
) -> ConnectionConfig {
    let streams = test.streams.max(1);
    let ahead = rate.map_or(AHEAD_MAX, |rate| rate.bytes_in(AHEAD).as_usize());
    let ahead = ahead / usize::from(streams);
    let window = base.window_tpdus / u16::from(streams);
    let send_buffer = base.send_buffer_bytes / usize::from(streams);
    ConnectionConfig {
        mode: test.mode().unwrap_or(base.mode),
        fec_words: test.fec_words(),
        unsent_bytes_max: ahead.max(2 * base.tpdu_bytes_max),
        window_tpdus: window.max(WINDOW_TPDUS_MIN.min(base.window_tpdus)),
        send_buffer_bytes: send_buffer.max(SEND_BUFFER_BYTES_MIN.min(base.send_buffer_bytes)),
        ..base
    }
}

/// The word on each stream, as it comes.
#[derive(Debug)]
pub(super) struct PerStream<T> {
    said: Vec<Option<T>>,
}

impl<T: Copy> PerStream<T> {
    /// The values of `streams` streams, of which none is known yet.
    pub(super) fn new(streams: u8) -> Self {
        Self {
            said: vec![None; usize::from(streams)],
        }
    }

    /// Takes the value that the record `name` has for `stream`.
    ///
    /// # Errors
    /// There is no such stream, or this was said of it already.
    pub(super) fn put(
        &mut self,
        stream: u8,
        value: T,
        name: &'static str,
    ) -> Result<(), PerfError> {
        let streams = u8::try_from(self.said.len()).unwrap_or(u8::MAX);
        let place = self.said.get_mut(usize::from(stream));
        let place = place.ok_or(PerfError::Stream { stream, streams })?;
        if place.is_some() {
            return Err(PerfError::Sequence(name));
        }
        *place = Some(value);
        Ok(())
    }

    /// The value of each stream, where it is known.
    pub(super) fn each(&self) -> impl Iterator<Item = Option<T>> + '_ {
        self.said.iter().copied()
    }

    /// The values of all streams, once all are known.
    pub(super) fn all(&self) -> Option<Vec<T>> {
        self.each().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{STREAMS, TestDirection};
    use super::*;
    use fulmar_proto::wire::Mode;

    #[test]
    fn every_stream_has_a_port_and_no_other_port_is_one_of_a_stream() {
        for streams in [1, 2, 128] {
            let known: Vec<u8> = (0..=u16::MAX)
                .filter_map(|port| stream_at(Port(port), streams))
                .collect();
            assert_eq!(known, (0..streams).collect::<Vec<u8>>());
            for stream in 0..streams {
                assert_eq!(stream_at(port_of(stream), streams), Some(stream));
            }
        }
    }

    #[test]
    fn what_streams_hold_together_has_a_bound_and_one_stream_has_all_of_it() {
        let base = ConnectionConfig {
            window_tpdus: 8_192,
            send_buffer_bytes: 64 << 20,
            ..ConnectionConfig::default()
        };
        let rate = Some(Bitrate::from_bits_per_second(1_000_000_000));
        for streams in STREAMS {
            let test = Test {
                streams,
                ..Test::new(1, Mode::Reliable, TestDirection::Up)
            };
            let lane = lane_config(&test, rate, base);
            let count = usize::from(streams);
            assert!(lane.payload_bytes().is_ok());
            assert!(lane.send_buffer_bytes * count <= 64 << 20, "{streams}");
            assert!(
                usize::from(lane.window_tpdus) * count <= 32_768,
                "{streams}"
            );
            // Of the delay: 2 ms, or two packets each.
            let ahead = 250_000.max(count * 2 * base.tpdu_bytes_max);
            assert!(lane.unsent_bytes_max * count <= ahead, "{streams}");
        }
        let one = lane_config(&Test::new(1, Mode::Reliable, TestDirection::Up), rate, base);
        assert_eq!((one.window_tpdus, one.send_buffer_bytes), (8_192, 64 << 20));
    }

    #[test]
    fn streams_whose_rate_is_found_have_something_to_send_and_little_that_waits() {
        let mbit = |mbit: u64| Some(Bitrate::from_bits_per_second(1_000_000 * mbit));
        assert_eq!(ahead_of_found(1, None, 1_400), 16 * 1_400);
        assert_eq!(ahead_of_found(1, mbit(100), 1_400), 125_000);
        assert_eq!(ahead_of_found(8, mbit(100), 1_400), 15_625);
        assert_eq!(ahead_of_found(8, mbit(1), 1_400), 4 * 1_400);
    }

    #[test]
    fn what_is_said_of_a_stream_counts_once_and_only_of_those_that_are() {
        let mut said = PerStream::new(2);
        assert!(said.put(1, 'b', "END").is_ok());
        assert_eq!(said.all(), None);
        let beyond = said.put(2, 'c', "END");
        assert!(
            matches!(
                beyond,
                Err(PerfError::Stream {
                    stream: 2,
                    streams: 2
                })
            ),
            "{beyond:?}"
        );
        let again = said.put(1, 'd', "END");
        assert!(
            matches!(again, Err(PerfError::Sequence("END"))),
            "{again:?}"
        );
        assert!(said.put(0, 'a', "END").is_ok());
        assert_eq!(said.all(), Some(vec!['a', 'b']));
    }
}
