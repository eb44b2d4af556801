//! A sender's reaction to loss and windows, rule by rule, as scripts.
//!
//! Segments have 1000 octets. The TCP is the reference TCP without timestamps, changed where a test
//! says so.

use crate::tcp_drill;
use crate::tcp_drill::{ACK, Drill, FIN, reference};
use fulmar_baseline::tcp::{ReduceFrom, TcpCloseReason, TcpConfig, TcpEvent, TcpPreset};
use fulmar_baseline::wire::tcp::TcpFlags;
use fulmar_proto::units::Duration;

const MSS: u16 = 1000;

/// A connection with `segments` of 1000 octets in flight and more to send.
fn sending(segments: u16, change: impl FnOnce(&mut TcpConfig)) -> Drill {
    let config = reference(|c| {
        c.growth.initial_window = segments;
        change(c);
    });
    let mut drill = Drill::established(config, MSS);
    drill.write(50_000);
    let expected: Vec<_> = (0..segments).map(|i| (segment(i), 1000)).collect();
    assert_eq!(drill.ranges(), expected, "the initial window");
    drill
}

/// The position where segment `i` begins.
fn segment(i: u16) -> u32 {
    1 + 1000 * u32::from(i)
}

fn duplicates(drill: &mut Drill, count: usize) {
    for _ in 0..count {
        drill.peer(ACK, 1, 1, &[]);
    }
}

fn window(drill: &Drill) -> u64 {
    drill.status().expect("open").window
}

#[test]
fn slow_start_answers_each_acknowledgement_with_one_segment_more() {
    let mut drill = sending(2, |_| {});
    drill.peer(ACK, 1, segment(1), &[]);
    assert_eq!(drill.ranges(), [(segment(2), 1000), (segment(3), 1000)]);
    drill.peer(ACK, 1, segment(3), &[]);
    assert_eq!(drill.all_sent().len(), 3, "two left, one more");
}

/// Tests RFC 5681, section 3.2, and RFC 6582, section 3.2.
#[test]
fn the_third_duplicate_sends_the_first_segment_again_and_halves_the_window() {
    let mut drill = sending(10, |_| {});
    duplicates(&mut drill, 2);
    drill.silent();
    duplicates(&mut drill, 1);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    let status = drill.status().unwrap();
    assert_eq!((status.window, status.threshold), (5_000, 5_000));
    // Six of ten have left: the seventh duplicate makes room.
    duplicates(&mut drill, 2);
    drill.silent();
    duplicates(&mut drill, 1);
    assert_eq!(drill.ranges(), [(segment(10), 1000)]);
    drill.peer(ACK, 1, segment(11), &[]);
    assert_eq!(window(&drill), 5_000, "it ends at the threshold");
    assert_eq!(drill.all_sent().len(), 5);
}

#[test]
fn a_partial_acknowledgement_sends_the_next_hole_at_once() {
    let mut drill = sending(8, |_| {});
    duplicates(&mut drill, 3);
    drill.all_sent();
    drill.peer(ACK, 1, segment(4), &[]);
    assert_eq!(drill.ranges()[0], (segment(4), 1000));
    drill.peer(ACK, 1, segment(6), &[]);
    assert_eq!(drill.ranges()[0], (segment(6), 1000));
    assert_eq!(drill.counters().fast_recoveries, 1);
}

/// Tests RFC 3042.
#[test]
fn limited_transmit_sends_new_segments_on_the_first_two_duplicates() {
    for (limited, expected) in [(true, 1), (false, 0)] {
        let mut drill = sending(4, |c| c.recovery.limited_transmit = limited);
        for i in 0..2 {
            duplicates(&mut drill, 1);
            let sent = drill.ranges();
            assert_eq!(sent.len(), expected);
            assert!(sent.iter().all(|range| *range == (segment(4 + i), 1000)));
        }
        duplicates(&mut drill, 1);
        // Three left the network: without limited transmit, one segment and the retransmitted first
        // one are in flight.
        let expected = [(segment(0), 1000), (segment(4), 1000)];
        let count = if limited { 1 } else { 2 };
        assert_eq!(drill.ranges(), expected[..count]);
        // Four were in flight; segments that the duplicates sent do not count.
        assert_eq!(window(&drill), 2_000);
    }
}

/// Tests RFC 6675: `IsLost`, `NextSeg` and the pipe.
#[test]
fn sack_sends_again_exactly_what_is_missing() {
    let mut drill = sending(10, |c| c.recovery.sack = true);
    // 0, 3 and 9 are lost.
    drill.peer_sacks(1, &[(segment(1), segment(2))]);
    drill.peer_sacks(1, &[(segment(1), segment(3))]);
    drill.silent();
    drill.peer_sacks(1, &[(segment(4), segment(5)), (segment(1), segment(3))]);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    for i in 6..=9 {
        drill.peer_sacks(1, &[(segment(4), segment(i)), (segment(1), segment(3))]);
    }
    // The window is 5. In the network are the retransmitted 0, segment 9, and those sent now: 3,
    // then new ones.
    assert_eq!(
        drill.ranges(),
        [(segment(3), 1000), (segment(10), 1000), (segment(11), 1000)]
    );
    drill.peer_sacks(segment(3), &[(segment(4), segment(9))]);
    drill.peer_sacks(segment(9), &[]);
    assert_eq!(drill.counters().resent, 2);
}

/// In RFC 6675, section 5, a cumulative acknowledgement with news beyond a hole is a duplicate,
/// too.
#[test]
fn sack_blocks_on_an_advancing_acknowledgement_count() {
    let mut drill = sending(6, |c| c.recovery.sack = true);
    drill.peer_sacks(segment(1), &[(segment(2), segment(3))]);
    drill.peer_sacks(segment(1), &[(segment(2), segment(4))]);
    drill.all_sent();
    drill.peer_sacks(segment(1), &[(segment(2), segment(5))]);
    assert_eq!(drill.ranges()[0], (segment(1), 1000));
}

/// Tests RFC 6675's rule 4.
#[test]
fn the_rescue_sends_the_newest_segment_again_once() {
    for rescue in [true, false] {
        let config = reference(|c| {
            c.growth.initial_window = 8;
            c.recovery.sack = true;
            c.recovery.rescue = rescue;
        });
        let mut drill = Drill::established(config, MSS);
        drill.write(8_000);
        drill.all_sent();
        drill.peer_sacks(1, &[(segment(1), segment(5))]);
        assert_eq!(drill.ranges(), [(segment(0), 1000)]);
        drill.peer_sacks(segment(5), &[]);
        let expected: &[(u32, usize)] = if rescue { &[(segment(7), 1000)] } else { &[] };
        assert_eq!(drill.ranges(), expected);
        drill.peer_sacks(segment(6), &[]);
        drill.silent();
    }
}

/// Tests RFC 6298, section 5, and RFC 5681, section 3.1.
#[test]
fn a_timeout_begins_with_one_segment_and_doubles() {
    let mut drill = sending(8, |_| {});
    // The handshake took 100 ms, which gives 300 ms, and therefore the minimum.
    drill.advance(999);
    drill.silent();
    drill.advance(1);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    let status = drill.status().unwrap();
    assert_eq!((status.window, status.threshold), (1_000, 4_000));
    drill.advance(2_000);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    let status = drill.status().unwrap();
    assert_eq!(status.threshold, 4_000, "the same octets again");
    assert_eq!(status.rto, Duration::from_secs(4));
    drill.peer(ACK, 1, segment(1), &[]);
    assert_eq!(drill.ranges(), [(segment(1), 1000), (segment(2), 1000)]);
    assert_eq!(
        drill.status().unwrap().rto,
        Duration::from_secs(4),
        "Karn: what was sent twice gives no sample"
    );
    drill.advance(100);
    drill.peer(ACK, 1, segment(8), &[]);
    drill.all_sent();
    drill.advance(100);
    drill.peer(ACK, 1, segment(9), &[]);
    assert_eq!(drill.status().unwrap().rto, Duration::from_secs(1));
}

#[test]
fn after_a_timeout_with_sack_what_arrived_is_not_sent_again() {
    let mut drill = sending(6, |c| c.recovery.sack = true);
    drill.peer_sacks(1, &[(segment(2), segment(4))]);
    drill.advance(1_000);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    drill.peer_sacks(segment(1), &[(segment(2), segment(4))]);
    assert_eq!(drill.ranges(), [(segment(1), 1000), (segment(4), 1000)]);
}

#[test]
fn a_connection_is_given_up_after_its_retries() {
    let mut drill = sending(1, |c| c.data_retries = 2);
    drill.advance(1_000 + 2_000);
    assert_eq!(drill.all_sent().len(), 2);
    drill.advance(4_000);
    drill.silent();
    let why = TcpCloseReason::TimedOut;
    assert_eq!(
        drill.events.last(),
        Some(&TcpEvent::Closed {
            id: drill.id(),
            why
        })
    );
}

/// Tests RFC 5682, section 2.1.
#[test]
fn frto_finds_a_timeout_spurious_when_the_originals_arrive() {
    let mut drill = sending(6, |c| c.recovery.frto = true);
    drill.advance(1_000);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    drill.peer(ACK, 1, segment(1), &[]);
    let new = [(segment(6), 1000), (segment(7), 1000)];
    assert_eq!(drill.ranges(), new, "new data instead of old");
    drill.peer(ACK, 1, segment(2), &[]);
    assert_eq!(window(&drill), 6_000, "as before the timeout");
    assert_eq!(drill.counters().spurious_timeouts, 1);
    let again: Vec<_> = drill
        .ranges()
        .into_iter()
        .filter(|r| r.0 < segment(8))
        .collect();
    assert_eq!(again, [], "nothing is sent again");
}

#[test]
fn frto_goes_back_to_repeating_at_a_duplicate() {
    let mut drill = sending(6, |c| c.recovery.frto = true);
    drill.advance(1_000);
    drill.peer(ACK, 1, segment(1), &[]);
    drill.all_sent();
    drill.peer(ACK, 1, segment(1), &[]);
    assert_eq!(
        drill.ranges().first(),
        None,
        "two are out, the window is two"
    );
    drill.peer(ACK, 1, segment(2), &[]);
    assert_eq!(drill.ranges()[0], (segment(2), 1000));
    assert_eq!(drill.counters().spurious_timeouts, 0);
}

/// RFC 5681, equation 4, takes half of the flight; ns-3 and Linux take half of other amounts. With a
/// window of ten segments, eight are in flight, and three duplicates show that five are in the
/// network.
#[test]
fn the_threshold_is_half_of_the_flight_or_of_the_pipe_or_of_the_window() {
    for (reduce, threshold) in [
        (ReduceFrom::Flight, 4_000),
        (ReduceFrom::Pipe, 2_500),
        (ReduceFrom::Window, 5_000),
    ] {
        let config = reference(|c| {
            c.growth.initial_window = 10;
            c.recovery.reduce = reduce;
        });
        let mut drill = Drill::established(config, MSS);
        drill.write(8_000);
        duplicates(&mut drill, 3);
        let status = drill.status().expect("open");
        assert_eq!(status.threshold, threshold, "{reduce:?}");
    }
}

/// Compares RFC 9937 with RFC 6675, with a window of twenty segments of which the first is lost. With
/// RFC 9937 half of the octets that arrive leave from the beginning. With RFC 6675 none leave until
/// half of the window has arrived, and then as many as arrive.
#[test]
fn with_rate_reduction_half_of_what_arrives_leaves_from_the_beginning() {
    let sent_with = |rate_reduction| {
        let mut drill = sending(20, |c| {
            c.recovery.sack = true;
            c.recovery.rate_reduction = rate_reduction;
        });
        for i in 1..=3 {
            drill.peer_sacks(1, &[(segment(1), segment(i + 1))]);
        }
        assert_eq!(drill.ranges(), [(segment(0), 1000)]);
        let mut sent = Vec::new();
        for i in 4..20 {
            drill.peer_sacks(1, &[(segment(1), segment(i + 1))]);
            sent.push(drill.all_sent().len());
        }
        sent
    };
    // After three duplicates 16 segments are in the network, and the threshold is ten.
    let (without, with) = (sent_with(false), sent_with(true));
    assert_eq!(without, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    // RecoverFS is 18: the third duplicate tells of one of them. The retransmitted first segment is
    // one of those that leave. When the pipe has fallen to the threshold, as many octets leave as
    // arrive.
    let mut left = 0;
    for (i, &sent) in with.iter().take(11).enumerate() {
        left += sent;
        assert_eq!(left + 1, ((i + 2) * 10 / 18).max(1), "{with:?}");
    }
}

/// In RFC 5681, section 3.1, an acknowledgement of new data opens the window, even if it ends a
/// repair. In ns-3's way a window of one segment stays one.
#[test]
fn the_acknowledgement_that_ends_a_repair_opens_the_window_unless_as_in_ns_3() {
    for (grows, segments) in [(true, 2), (false, 1)] {
        let mut drill = sending(1, |c| c.growth.at_repair_end = grows);
        drill.advance(1_000);
        assert_eq!(drill.ranges(), [(segment(0), 1000)], "timed out");
        drill.peer(ACK, 1, segment(1), &[]);
        assert_eq!(window(&drill), 1000 * segments);
        assert_eq!(drill.all_sent().len() as u64, segments);
    }
}

/// Tests RFC 5682, section 2.1, step 2b.
#[test]
fn frto_repeats_at_once_when_the_peers_window_has_no_room_for_new_data() {
    let mut drill = sending(6, |c| c.recovery.frto = true);
    drill.advance(1_000);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    drill.window = 5_000;
    drill.peer(ACK, 1, segment(1), &[]);
    assert_eq!(
        drill.ranges(),
        [(segment(1), 1000), (segment(2), 1000)],
        "six segments are out, and the window ends behind the sixth"
    );
}

/// Tests RFC 5682, section 2.1, step 1: the first timeout's repair is not over.
#[test]
fn frto_does_not_begin_again_before_the_first_repair_is_over() {
    let mut drill = sending(6, |c| c.recovery.frto = true);
    drill.advance(1_000);
    drill.peer(ACK, 1, segment(1), &[]);
    drill.all_sent();
    drill.advance(2_000);
    assert_eq!(drill.ranges(), [(segment(1), 1000)]);
    drill.peer(ACK, 1, segment(2), &[]);
    assert_eq!(
        drill.ranges(),
        [(segment(2), 1000), (segment(3), 1000)],
        "no new data"
    );
}

/// Tests RFC 9293, section 3.8.6: the FIN waits, while the octets that fit the window do not.
#[test]
fn a_window_of_one_segment_holds_back_the_fin_alone() {
    let mut drill = Drill::established(reference(|c| c.growth.initial_window = 1), MSS);
    drill.write(2_000);
    assert_eq!(drill.ranges(), [(segment(0), 1000)]);
    drill.close();
    drill.window = 1_000;
    drill.peer(ACK, 1, segment(1), &[]);
    let last = drill.sent();
    assert_eq!((last.range(), last.has(FIN)), ((segment(1), 1000), false));
    drill.peer(ACK, 1, segment(2), &[]);
    let fin = drill.sent();
    assert_eq!((fin.range(), fin.has(FIN)), ((segment(2), 0), true));
}

/// Tests RFC 9293, section 3.8.6: the last octets leave up to the window's edge, however short their
/// segment is, and the FIN follows when it may.
#[test]
fn a_fin_beyond_the_window_holds_back_no_short_last_segment() {
    for nagle in [false, true] {
        let config = reference(|c| {
            c.growth.initial_window = 2;
            c.nagle = nagle;
        });
        let mut drill = Drill::established(config, MSS);
        drill.write(2_500);
        assert_eq!(drill.ranges(), [(segment(0), 1000), (segment(1), 1000)]);
        drill.close();
        drill.silent();
        drill.window = 1_500;
        drill.peer(ACK, 1, segment(1), &[]);
        let last = drill.sent();
        assert_eq!((last.range(), last.has(FIN)), ((segment(2), 500), false));
        drill.window = 0;
        drill.peer(ACK, 1, segment(2) + 500, &[]);
        drill.silent();
        drill.window = 1;
        drill.peer(ACK, 1, segment(2) + 500, &[]);
        let fin = drill.sent();
        let all = ((segment(2) + 500, 0), true);
        assert_eq!((fin.range(), fin.has(FIN)), all, "nagle {nagle}");
        drill.silent();
    }
}

/// Tests RFC 6582, section 3.2, step 1: duplicates caused by needless retransmissions do not count.
#[test]
fn a_careful_sender_does_not_take_its_own_repetitions_for_a_loss() {
    for careful in [true, false] {
        let mut drill = sending(4, |c| c.recovery.careful = careful);
        drill.advance(1_000);
        drill.peer(ACK, 1, segment(4), &[]);
        assert_eq!(drill.ranges().len(), 1 + 2);
        for _ in 0..3 {
            drill.peer(ACK, 1, segment(4), &[]);
        }
        let expected = u64::from(!careful);
        assert_eq!(drill.counters().fast_recoveries, expected);
    }
}

/// Tests RFC 793 as the free-space-optics paper has it.
#[test]
fn without_congestion_control_only_a_timeout_repeats_and_it_repeats_all() {
    let mut drill = Drill::established(TcpPreset::Rfc793NoCc.config(), MSS);
    drill.window = 6_000;
    drill.peer(ACK, 1, 1, &[]);
    drill.write(6_000);
    assert_eq!(drill.all_sent().len(), 6, "the peer's window alone");
    duplicates(&mut drill, 5);
    drill.silent();
    drill.advance(1_000);
    let all: Vec<_> = (0..6).map(|i| (segment(i), 1000)).collect();
    assert_eq!(drill.ranges(), all);
}

/// Tests RFC 3168, section 6.1.2.
#[test]
fn a_congestion_mark_halves_once_for_each_window_and_says_so() {
    let mut config = reference(|c| c.growth.initial_window = 8);
    config.ecn = true;
    let mut drill = Drill::connect(config);
    drill.sent();
    drill.options.mss = Some(MSS);
    drill.peer(tcp_drill::SYN | ACK | TcpFlags::ECE, 0, 1, &[]);
    drill.options.mss = None;
    drill.write(50_000);
    drill.all_sent();
    drill.peer(ACK | TcpFlags::ECE, 1, segment(1), &[]);
    assert_eq!(drill.status().unwrap().threshold, 3_500);
    drill.peer(ACK | TcpFlags::ECE, 1, segment(6), &[]);
    assert_eq!(drill.counters().marks, 1);
    assert!(drill.sent().has(TcpFlags::CWR));
    drill.peer(ACK, 1, segment(8), &[]);
    assert!(!drill.all_sent().iter().any(|s| s.has(TcpFlags::CWR)));
    drill.peer(ACK | TcpFlags::ECE, 1, segment(9), &[]);
    assert_eq!(drill.counters().marks, 2, "another window");
}

/// Tests RFC 3168, section 6.1.2: the peer echoes marks until it hears of any reduction.
#[test]
fn a_lost_segment_and_a_timeout_say_that_the_window_was_reduced_where_ecn_is_agreed() {
    for (ecn, times_out) in [(true, false), (true, true), (false, false)] {
        let mut config = reference(|c| c.growth.initial_window = 8);
        config.ecn = ecn;
        let mut drill = Drill::connect(config);
        drill.sent();
        drill.options.mss = Some(MSS);
        drill.peer(tcp_drill::SYN | ACK | TcpFlags::ECE, 0, 1, &[]);
        drill.options.mss = None;
        drill.write(50_000);
        drill.all_sent();
        if times_out {
            drill.advance(3_000);
        } else {
            duplicates(&mut drill, 3);
        }
        assert!(!drill.sent().has(TcpFlags::CWR), "it is sent again");
        drill.peer(ACK, 1, segment(8), &[]);
        let new = drill.all_sent();
        let told = new.iter().filter(|s| s.has(TcpFlags::CWR)).count();
        assert_eq!(told, usize::from(ecn), "times out: {times_out}");
    }
}

/// Tests RFC 5681, section 4.1.
#[test]
fn after_a_silence_the_window_begins_anew() {
    let mut drill = Drill::established(reference(|c| c.growth.initial_window = 2), MSS);
    drill.write(4_000);
    drill.peer(ACK, 1, segment(2), &[]);
    drill.peer(ACK, 1, segment(4), &[]);
    drill.all_sent();
    assert_eq!(window(&drill), 4_000);
    drill.advance(1_001);
    drill.write(50_000);
    assert_eq!(drill.all_sent().len(), 2);
}

/// Tests RFC 9293, section 3.8.6.1.
#[test]
fn a_shut_window_is_probed_for_ever_and_goes_on_when_it_opens() {
    let mut drill = sending(2, |c| c.data_retries = 3);
    drill.window = 0;
    drill.peer(ACK, 1, segment(2), &[]);
    drill.silent();
    let mut probes = 0;
    for _ in 0..300 {
        drill.advance(1_000);
        for probe in drill.all_sent() {
            assert_eq!(probe.range(), (segment(2), 1));
            probes += 1;
            drill.peer(ACK, 1, segment(2), &[]);
        }
    }
    assert!((6..40).contains(&probes), "{probes} in five minutes");
    drill.window = 10_000;
    drill.peer(ACK, 1, segment(2) + 1, &[]);
    assert!(!drill.ranges().is_empty());
}

/// Tests RFC 9293, section 3.8.6.2.1, and RFC 896.
#[test]
fn small_segments_wait_for_room_and_with_nagle_for_acknowledgements() {
    let mut drill = sending(2, |_| {});
    drill.window = 400;
    drill.peer(ACK, 1, segment(2), &[]);
    drill.silent();
    drill.advance(1_000);
    assert_eq!(drill.ranges(), [(segment(2), 400)], "what fits, in the end");

    let mut nagle = Drill::established(reference(|c| c.nagle = true), MSS);
    nagle.write(100);
    assert_eq!(nagle.ranges(), [(1, 100)]);
    nagle.write(100);
    nagle.silent();
    nagle.peer(ACK, 1, 101, &[]);
    assert_eq!(nagle.ranges(), [(101, 100)]);
}

/// Tests RFC 9040; the link-layer paper calls it CBI.
#[test]
fn a_later_connection_takes_over_the_threshold() {
    for shared in [true, false] {
        let config = reference(|c| {
            c.growth.initial_window = 8;
            c.sharing.ssthresh = shared;
            c.time_wait = Duration::from_millis(1);
        });
        let mut drill = Drill::established(config, MSS);
        drill.write(8_000);
        duplicates(&mut drill, 3);
        drill.close();
        drill.all_sent();
        drill.peer(ACK | FIN, 1, segment(8) + 1, &[]);
        drill.advance(10);
        drill.all_sent();
        drill.events.clear();
        drill.open(config);
        drill.sent();
        drill.options.mss = Some(MSS);
        drill.peer(tcp_drill::SYN | ACK, 0, 1, &[]);
        let threshold = drill.status().unwrap().threshold;
        assert_eq!(threshold, if shared { 4_000 } else { u64::MAX });
    }
}
