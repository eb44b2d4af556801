//! The window and the round-trip time that rate and distance ask for: equations 3 and 4.

use fulmar_proto::units::{Bitrate, ByteCount, Distance, Duration};

/// The round-trip time over `distance` (equation 4): 2 d / c + processing, with the speed of light in
/// vacuum. `processing` is the time the far end takes to answer; the source does not give its value, and
/// its examples come out with none. A time too long for the type is [`Duration::MAX`].
pub fn round_trip_time(distance: Distance, processing: Duration) -> Duration {
    let there_and_back = Distance::from_metres(2.0 * distance.metres());
    let light = there_and_back.map_or(Duration::MAX, Distance::light_time);
    light.saturating_add(processing)
}

/// The smallest window that keeps a link of `rate` busy for a round trip (equation 3):
/// WND = RTT × D, rounded down to whole octets as the source prints it.
pub fn window(round_trip: Duration, rate: Bitrate) -> ByteCount {
    rate.bytes_in(round_trip)
}
