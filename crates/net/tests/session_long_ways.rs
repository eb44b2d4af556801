//! Parity sent later beside sending again, where more is on its way than either end keeps.
//!
//! Method: that of [`session_strength_fades`](super::session_strength_fades), on longer ways, with independent bit errors both ways.
//! A stream has data to send all the time, its rate is told, and the strength follows.

use super::session_strength_fades::{Bits, FOLLOWS, Line, SENDS_AGAIN, arrivals_of};
use fulmar_proto::units::{Bitrate, Duration};

/// A link with a queue of 50 ms of full packets, and 33 of them at least.
const fn line(megabits: u32, one_way_millis: u64) -> Line {
    let eighths = megabits / 8;
    Line {
        rate: Bitrate::from_bits_per_second(megabits as u64 * 1_000_000),
        delay: Duration::from_millis(one_way_millis),
        queue: 33 * if eighths > 0 { eighths } else { 1 },
        // As gateways have it.
        window_tpdus: 32_768,
    }
}

/// The shares of the link's rate with parity sent later, and without, once a third of the time is over: until then the flow
/// begins, and the strength is found.
fn both(line: Line, rate: f64, (seconds, seed): (u64, u64)) -> [f64; 2] {
    let span = Duration::from_secs(seconds);
    let shares = [FOLLOWS, SENDS_AGAIN].map(|setting| {
        let arrivals = arrivals_of(line, (Bits::Alike(rate), None), setting, (span, seed));
        let until = |end: Duration| {
            let before = arrivals.iter().take_while(|(at, _)| *at <= end);
            before.last().map_or(0, |(_, octets)| *octets)
        };
        let carried = until(span) - until(span / 3);
        carried as f64 / line.rate.bytes_in(span.saturating_sub(span / 3)).0 as f64
    });
    let [later, again] = shares;
    let (megabits, trip) = (line.rate.as_bits_per_second() / 1_000_000, line.delay * 2);
    println!("{megabits} mbit, {trip:?}, {rate:e}: later {later:.4}, again {again:.4}");
    shares
}

#[test]
fn where_more_is_under_way_than_is_kept_parity_sent_later_carries_no_less_than_sending_again() {
    for rate in [1e-4, 1e-3] {
        let [later, again] = both(line(100, 60), rate, (6, 43));
        assert!(later > 0.99 * again, "{rate:e}: {later} beside {again}");
    }
}

#[test]
#[ignore = "prints the table of ADR 0033, section 8"]
fn a_table_of_long_ways() {
    for (line, seconds) in [
        (line(5, 50), 60),
        (line(100, 60), 9),
        (line(100, 10), 9),
        (line(20, 300), 30),
    ] {
        for rate in [1e-5, 1e-4, 1e-3] {
            both(line, rate, (seconds, 41));
        }
    }
}
