//! A receiver's acknowledgements, and their times, as scripts.

use crate::tcp_drill::{ACK, Drill, SYN, reference};
use fulmar_baseline::tcp::{TcpConfig, TcpPreset};
use fulmar_baseline::wire::tcp::{TcpFlags, Timestamps};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::ByteCount;

const OCTETS: [u8; 1000] = [7; 1000];

fn receiving(change: impl FnOnce(&mut TcpConfig)) -> Drill {
    Drill::accepted(reference(change))
}

/// Sends segment `i` of 1000 octets from the peer.
fn segment(drill: &mut Drill, i: u32) {
    drill.peer(ACK, at(i), 1, &OCTETS);
}

const fn at(i: u32) -> u32 {
    1 + 1000 * i
}

/// Tests RFC 5681, section 4.2.
#[test]
fn every_second_segment_is_acknowledged_at_once_and_a_single_one_in_time() {
    let mut drill = receiving(|_| {});
    segment(&mut drill, 0);
    drill.silent();
    segment(&mut drill, 1);
    assert_eq!(drill.sent().ack, at(2));
    segment(&mut drill, 2);
    drill.advance(199);
    drill.silent();
    drill.advance(1);
    assert_eq!(drill.sent().ack, at(3));
    assert_eq!(drill.received.len(), 3000);
}

#[test]
fn an_acknowledgement_rides_on_data() {
    let mut drill = receiving(|_| {});
    segment(&mut drill, 0);
    drill.write(10);
    let sent = drill.sent();
    assert_eq!((sent.len, sent.ack), (10, at(1)));
    drill.advance(500);
    drill.silent();
}

#[test]
fn what_leaves_or_fills_a_gap_or_comes_again_is_acknowledged_at_once() {
    let mut drill = receiving(|_| {});
    segment(&mut drill, 1);
    assert_eq!(drill.sent().ack, at(0));
    segment(&mut drill, 2);
    assert_eq!(drill.sent().ack, at(0));
    segment(&mut drill, 0);
    assert_eq!(drill.sent().ack, at(3));
    segment(&mut drill, 1);
    assert_eq!(drill.sent().ack, at(3), "a copy");
    assert_eq!(drill.received.len(), 3000);
}

/// Tests RFC 2760, section 3.2.
#[test]
fn acknowledgements_are_delayed_only_after_the_first_gap_if_so_configured() {
    let mut drill = receiving(|c| c.acks.after_slow_start = true);
    segment(&mut drill, 0);
    assert_eq!(drill.sent().ack, at(1));
    segment(&mut drill, 2);
    segment(&mut drill, 1);
    drill.all_sent();
    segment(&mut drill, 3);
    drill.silent();
}

/// A listener of ns-3 does this.
#[test]
fn a_listener_acknowledges_the_first_segment_at_once_if_so_configured() {
    let mut drill = receiving(|c| c.acks.first_at_once = true);
    segment(&mut drill, 0);
    assert_eq!(drill.sent().ack, at(1));
    segment(&mut drill, 1);
    drill.silent();
    segment(&mut drill, 2);
    assert_eq!(drill.sent().ack, at(3));
    let mut drill = receiving(|c| c.acks.first_at_once = true);
    segment(&mut drill, 1);
    assert_eq!(drill.sent().ack, at(0), "that was the first");
    segment(&mut drill, 0);
    assert_eq!(drill.sent().ack, at(2), "a gap is filled");
    segment(&mut drill, 2);
    drill.silent();
}

/// Tests RFC 2018, section 4: the first block holds the segment that came last; the others are
/// those told last.
#[test]
fn sack_blocks_begin_with_the_newest() {
    let mut drill = receiving(|c| c.recovery.sack = true);
    let mut blocks = Vec::new();
    for i in [2, 4, 6, 8, 10] {
        segment(&mut drill, i);
        blocks.insert(0, (at(i), at(i + 1)));
        blocks.truncate(4);
        assert_eq!(drill.sent().sack, blocks);
    }
    segment(&mut drill, 6);
    let told = [6, 10, 8, 4].map(|i| (at(i), at(i + 1)));
    assert_eq!(drill.sent().sack, told, "a copy is told of first, too");
    segment(&mut drill, 5);
    assert_eq!(drill.sent().sack[0], (at(4), at(7)), "three runs in one");
    for i in [1, 3, 7, 9] {
        segment(&mut drill, i);
        drill.all_sent();
    }
    segment(&mut drill, 0);
    let last = drill.sent();
    assert_eq!((last.ack, last.sack), (at(11), vec![]));
}

#[test]
fn with_timestamps_three_blocks_fit() {
    let mut drill = Drill::listening(TcpPreset::LinuxLike.config());
    drill.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    drill.options.sack_permitted = true;
    drill.peer(SYN, 0, 0, &[]);
    drill.options.sack_permitted = false;
    drill.peer(ACK, 1, 1, &[]);
    drill.all_sent();
    for i in [2, 4, 6, 8] {
        segment(&mut drill, i);
    }
    assert_eq!(drill.all_sent().last().unwrap().sack.len(), 3);
}

#[test]
fn the_window_is_what_is_not_read_and_its_edge_does_not_move_back() {
    let mut drill = receiving(|c| c.receive_buffer = ByteCount(10_000));
    drill.reads = false;
    let mut edge = 0;
    for i in 0..10 {
        segment(&mut drill, i);
        for ack in drill.all_sent() {
            assert!(ack.ack + u32::from(ack.window) >= edge);
            edge = ack.ack + u32::from(ack.window);
            assert_eq!(edge, at(10));
        }
    }
    drill.read_all();
    let update = drill.sent();
    assert_eq!((update.ack, update.window), (at(10), 10_000), "it opens");
    assert_eq!(drill.received.len(), 10_000);
}

#[test]
fn octets_beyond_the_window_are_not_taken() {
    let mut drill = receiving(|c| c.receive_buffer = ByteCount(1_500));
    drill.reads = false;
    segment(&mut drill, 0);
    segment(&mut drill, 1);
    let ack = drill.all_sent().pop().unwrap();
    assert_eq!((ack.ack, ack.window), (1501, 0));
    segment(&mut drill, 5);
    assert_eq!(drill.sent().ack, 1501);
}

/// Tests RFC 7323, section 4.3: the echo is that of the segment for which the acknowledgement
/// waited.
#[test]
fn a_delayed_acknowledgement_echoes_the_first_timestamp() {
    let mut drill = Drill::listening(TcpPreset::NewReno2005.config());
    let stamps = |value| Some(Timestamps { value, echo: 0 });
    drill.options.timestamps = stamps(10);
    drill.peer(SYN, 0, 0, &[]);
    drill.peer(ACK, 1, 1, &[]);
    drill.all_sent();
    drill.options.timestamps = stamps(20);
    segment(&mut drill, 0);
    drill.options.timestamps = stamps(30);
    segment(&mut drill, 1);
    let echo = |drill: &mut Drill| drill.sent().options.timestamps.unwrap().echo;
    assert_eq!(echo(&mut drill), 20);
    drill.options.timestamps = stamps(40);
    segment(&mut drill, 3);
    assert_eq!(echo(&mut drill), 20, "a gap: as before");
    // PAWS, section 5: a timestamp older than the one echoed, and no timestamp at all.
    drill.options.timestamps = stamps(5);
    segment(&mut drill, 2);
    assert_eq!(drill.sent().ack, at(2));
    drill.options.timestamps = None;
    segment(&mut drill, 2);
    assert_eq!(drill.sent().ack, at(2));
    assert_eq!(drill.received.len(), 2000);
}

#[test]
fn a_go_back_n_receiver_drops_what_is_out_of_order() {
    let mut drill = Drill::accepted(TcpPreset::Rfc793NoCc.config());
    segment(&mut drill, 1);
    assert_eq!(drill.sent().ack, at(0));
    segment(&mut drill, 0);
    assert_eq!(drill.sent().ack, at(1));
}

/// Tests RFC 3168, section 6.1.3.
#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_knows() {
    let mut drill = Drill::listening(reference(|c| c.ecn = true));
    drill.peer(SYN | TcpFlags::ECE | TcpFlags::CWR, 0, 0, &[]);
    drill.peer(ACK, 1, 1, &[]);
    drill.all_sent();
    drill.ecn = Ecn::Congested;
    segment(&mut drill, 0);
    drill.ecn = Ecn::Capable;
    assert!(drill.sent().has(TcpFlags::ECE), "at once");
    segment(&mut drill, 1);
    segment(&mut drill, 2);
    assert!(drill.sent().has(TcpFlags::ECE));
    drill.peer(ACK | TcpFlags::CWR, at(3), 1, &OCTETS);
    segment(&mut drill, 4);
    assert!(!drill.sent().has(TcpFlags::ECE));
}
