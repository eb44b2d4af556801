//! Closing, resets, and the resets that RFC 5961 accepts, as scripts.

use crate::tcp_drill::{ACK, Drill, FIN, RST, SYN, reference};
use fulmar_baseline::tcp::{TcpCloseReason, TcpEvent, TcpState};
use fulmar_baseline::wire::tcp::{SackBlock, TcpFlags, TcpOptions, TcpSeq};
use fulmar_proto::units::Duration;
use proptest::prelude::*;

fn state(drill: &Drill) -> Option<TcpState> {
    drill.status().map(|status| status.state)
}

fn closed(drill: &Drill) -> Option<TcpCloseReason> {
    drill.events.iter().find_map(|event| match event {
        TcpEvent::Closed { why, .. } => Some(*why),
        _ => None,
    })
}

fn established() -> Drill {
    Drill::established(reference(|_| {}), 1000)
}

#[test]
fn an_active_close_goes_through_fin_wait_and_time_wait() {
    let mut drill = established();
    drill.write(100);
    drill.close();
    let sent = drill.all_sent();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].has(FIN));
    assert_eq!(
        (sent[1].range(), state(&drill)),
        ((101, 0), Some(TcpState::FinWait1))
    );
    drill.peer(ACK, 1, 102, &[]);
    assert_eq!(state(&drill), Some(TcpState::FinWait2));
    drill.peer(ACK, 1, 102, b"still sending");
    drill.peer(ACK | FIN, 14, 102, &[]);
    assert_eq!(drill.received, b"still sending");
    assert_eq!(state(&drill), Some(TcpState::TimeWait));
    assert_eq!(drill.all_sent().last().unwrap().ack, 15);
    // A late copy of the FIN is answered, and the wait begins anew.
    drill.advance(40_000);
    drill.peer(ACK | FIN, 14, 102, &[]);
    assert_eq!(drill.sent().ack, 15);
    drill.advance(59_999);
    assert_eq!(closed(&drill), None);
    drill.advance(1);
    assert_eq!(closed(&drill), Some(TcpCloseReason::Finished));
}

#[test]
fn a_passive_close_goes_through_close_wait_and_last_ack() {
    let mut drill = established();
    drill.peer(ACK | FIN, 1, 1, b"bye");
    assert_eq!(drill.sent().ack, 5);
    assert_eq!(state(&drill), Some(TcpState::CloseWait));
    assert!(drill.events.contains(&TcpEvent::PeerFinished(drill.id())));
    drill.write(10);
    assert_eq!(drill.ranges(), [(1, 10)], "the other half is open");
    drill.close();
    assert!(drill.sent().has(FIN));
    assert_eq!(state(&drill), Some(TcpState::LastAck));
    drill.peer(ACK, 5, 12, &[]);
    assert_eq!(closed(&drill), Some(TcpCloseReason::Finished));
}

/// In RFC 9293, section 3.10.7.4, the peer may have left TIME-WAIT while its last acknowledgements
/// were lost.
#[test]
fn a_reset_where_all_but_our_fin_is_acknowledged_ends_the_connection_as_a_close_does() {
    for (acked, why) in [(11, TcpCloseReason::Finished), (1, TcpCloseReason::Reset)] {
        let mut drill = established();
        drill.peer(ACK | FIN, 1, 1, &[]);
        drill.write(10);
        drill.close();
        drill.peer(ACK, 2, acked, &[]);
        assert_eq!(state(&drill), Some(TcpState::LastAck));
        drill.peer(RST | ACK, 2, acked, &[]);
        assert_eq!(closed(&drill), Some(why));
    }
}

/// A driver that wakes late may bring other input first.
#[test]
fn a_deadline_that_has_passed_is_handled_with_what_comes_first() {
    let mut drill = established();
    drill.peer(ACK, 1, 1, b"alone");
    drill.silent();
    drill.now += Duration::from_millis(300);
    drill.peer(ACK, 6, 1, &[]);
    assert_eq!(drill.sent().ack, 6);
}

#[test]
fn both_may_close_at_once() {
    let mut drill = established();
    drill.close();
    drill.all_sent();
    drill.peer(ACK | FIN, 1, 1, &[]);
    assert_eq!(state(&drill), Some(TcpState::Closing));
    assert_eq!(drill.sent().ack, 2);
    drill.peer(ACK, 2, 2, &[]);
    assert_eq!(state(&drill), Some(TcpState::TimeWait));
}

#[test]
fn a_lost_fin_is_sent_again_and_one_out_of_order_waits_for_the_octets_before_it() {
    let mut drill = established();
    drill.close();
    assert!(drill.sent().has(FIN));
    drill.advance(1_000);
    let again = drill.sent();
    assert_eq!((again.has(FIN), again.seq), (true, 1));
    drill.peer(ACK | FIN, 4, 2, b"def");
    assert_eq!(state(&drill), Some(TcpState::FinWait2));
    drill.peer(ACK, 1, 2, b"abc");
    assert_eq!(state(&drill), Some(TcpState::TimeWait));
    assert_eq!(drill.received, b"abcdef");
    assert_eq!(drill.all_sent().last().unwrap().ack, 8);
}

#[test]
fn the_fin_rides_on_the_last_octets_that_wait() {
    let mut drill = established();
    drill.write(3_000);
    drill.close();
    drill.all_sent();
    drill.peer(ACK, 1, 1001, &[]);
    let sent = drill.all_sent();
    assert_eq!(
        sent.last().map(|s| (s.range(), s.has(FIN))),
        Some(((2001, 1000), true))
    );
}

#[test]
fn what_was_written_before_the_answer_is_sent_though_the_connection_was_closed() {
    let mut drill = Drill::connect(reference(|_| {}));
    drill.sent();
    drill.write(100);
    drill.close();
    drill.peer(SYN | ACK, 0, 1, &[]);
    let sent = drill.all_sent();
    assert_eq!(sent[0].range(), (1, 100));
    assert!(sent.last().is_some_and(|last| last.has(FIN)));

    let mut idle = Drill::connect(reference(|_| {}));
    idle.close();
    assert_eq!(closed(&idle), Some(TcpCloseReason::Aborted));
}

#[test]
fn an_abort_resets_with_the_number_that_the_peer_expects() {
    let mut drill = established();
    drill.write(100);
    drill.all_sent();
    drill.abort();
    let reset = drill.sent();
    assert_eq!((reset.has(RST), reset.seq), (true, 101));
    assert_eq!(closed(&drill), Some(TcpCloseReason::Aborted));
}

/// Tests RFC 5961, sections 3 to 5.
#[test]
fn only_what_is_exactly_expected_resets_and_the_rest_is_challenged() {
    let mut drill = established();
    drill.peer(RST, 1 + 70_000_000, 0, &[]);
    drill.silent();
    drill.peer(RST, 2, 0, &[]);
    assert_eq!(drill.sent().flags, ACK, "within the window");
    drill.peer(SYN, 1, 0, &[]);
    assert_eq!(drill.sent().flags, ACK);
    drill.peer(ACK, 1, 2, b"acknowledges what was not sent");
    assert_eq!(drill.sent().ack, 1);
    assert_eq!(drill.received, b"");
    drill.peer(RST, 1, 0, &[]);
    assert_eq!(closed(&drill), Some(TcpCloseReason::Reset));
}

#[test]
fn challenges_are_rationed() {
    let mut drill = established();
    for _ in 0..1000 {
        drill.peer(SYN, 1, 0, &[]);
    }
    assert_eq!(drill.all_sent().len(), 10);
    drill.advance(1_000);
    drill.peer(SYN, 1, 0, &[]);
    assert_eq!(drill.all_sent().len(), 1);
}

/// Tests RFC 6191 and RFC 9293, section 3.10.7.4.
#[test]
fn a_new_syn_ends_time_wait_and_an_old_one_does_not() {
    let mut drill = Drill::accepted(reference(|_| {}));
    drill.close();
    drill.all_sent();
    drill.peer(ACK | FIN, 1, 2, &[]);
    drill.all_sent();
    assert_eq!(state(&drill), Some(TcpState::TimeWait));
    drill.peer(SYN, 0, 0, &[]);
    assert_eq!(drill.sent().flags, ACK);
    drill.peer(SYN, 1_000, 0, &[]);
    let answer = drill.sent();
    assert_eq!((answer.flags, answer.ack), (SYN | ACK, 1_001));
    assert_eq!(closed(&drill), Some(TcpCloseReason::Finished));
}

/// The octet that the hostile peer sends at a relative sequence number; data begin at 1.
fn octet(seq: i64) -> u8 {
    u8::try_from(seq.rem_euclid(251)).expect("below 251")
}

/// A hostile segment: flags, sequence number, acknowledgement, length, window, and the wait before
/// it.
type Hostile = (u8, i32, i32, usize, u16, u64);

fn hostile() -> impl Strategy<Value = Hostile> {
    let numbers = (-3_000_i32..70_000, -3_000_i32..70_000);
    (
        any::<u8>(),
        numbers,
        0_usize..1500,
        any::<u16>(),
        0_u64..3_000,
    )
        .prop_map(|(flags, (seq, ack), len, window, wait)| (flags, seq, ack, len, window, wait))
}

proptest! {
    /// Segments with right checksums and wrong everything else, near the connection's numbers:
    /// nothing panics, answers are bounded, and the octets delivered are those sent at their
    /// places.
    #[test]
    fn hostile_segments_do_no_harm(
        segments in proptest::collection::vec(hostile(), 1..60),
        sack in any::<bool>(),
    ) {
        let config = reference(|c| {
            c.recovery.sack = sack;
            c.growth.initial_window = 10;
            c.rto.min = Duration::from_millis(200);
        });
        let mut drill = Drill::established(config, 1000);
        drill.write(20_000);
        drill.all_sent();
        for (flags, seq, ack, len, window, wait) in segments {
            drill.window = window;
            let octets: Vec<u8> = (0..).take(len).map(|i| octet(i64::from(seq) + i)).collect();
            let (seq, ack) = (seq.cast_unsigned(), ack.cast_unsigned());
            if sack {
                let (start, end) = (TcpSeq(ack), TcpSeq(seq));
                drill.options.sack.push(SackBlock { start, end });
            }
            drill.peer(TcpFlags(flags), seq, ack, &octets);
            drill.options = TcpOptions::default();
            drill.advance(wait);
            prop_assert!(drill.all_sent().len() < 100);
        }
        let expected: Vec<u8> = (1..).take(drill.received.len()).map(octet).collect();
        prop_assert_eq!(&drill.received, &expected);
    }
}
