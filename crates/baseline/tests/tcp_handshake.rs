//! Opening connections (RFC 9293, section 3.5), as scripts.

use crate::tcp_drill::{ACK, Drill, FIN, RST, SYN, reference};
use fulmar_baseline::tcp::{TcpCloseReason, TcpEvent, TcpPreset, TcpState};
use fulmar_baseline::wire::tcp::{TcpFlags, TcpOptions, TcpSeq, Timestamps};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{ByteCount, Duration};

fn closed(drill: &Drill) -> Option<TcpCloseReason> {
    drill.events.iter().find_map(|event| match event {
        TcpEvent::Closed { why, .. } => Some(*why),
        _ => None,
    })
}

#[test]
fn an_active_open_offers_what_is_configured_and_is_established_by_the_syn_ack() {
    let mut drill = Drill::connect(TcpPreset::LinuxLike.config());
    let syn = drill.sent();
    assert_eq!((syn.flags, syn.seq, syn.len), (SYN, 0, 0));
    assert_eq!(syn.options.mss, Some(1460));
    // 4 MiB need seven bits beyond the field's sixteen.
    assert_eq!(syn.options.window_scale, Some(7));
    assert!(syn.options.sack_permitted && syn.options.timestamps.is_some());
    assert_eq!(drill.status().unwrap().state, TcpState::SynSent);
    drill.peer(SYN | ACK, 0, 1, &[]);
    let ack = drill.sent();
    assert_eq!((ack.flags, ack.seq, ack.ack), (ACK, 1, 1));
    assert_eq!(drill.events, [TcpEvent::Connected(drill.id())]);
    // The peer offered nothing.
    assert_eq!(ack.options, TcpOptions::default());
}

#[test]
fn a_syn_is_sent_again_at_doubling_intervals_and_given_up() {
    let mut drill = Drill::connect(reference(|c| c.syn_retries = 2));
    drill.sent();
    for wait in [3_000, 6_000] {
        drill.advance(wait - 1);
        drill.silent();
        drill.advance(1);
        assert_eq!(drill.sent().flags, SYN);
    }
    drill.advance(12_000);
    drill.silent();
    assert_eq!(closed(&drill), Some(TcpCloseReason::TimedOut));
}

/// Tests RFC 6298, section 5.7.
#[test]
fn after_a_lost_syn_data_begin_with_a_timeout_of_three_seconds() {
    let config = reference(|c| c.rto.initial = Duration::from_secs(1));
    let mut drill = Drill::connect(config);
    drill.sent();
    drill.advance(1_000);
    drill.sent();
    drill.peer(SYN | ACK, 0, 1, &[]);
    drill.write(100);
    drill.all_sent();
    assert_eq!(drill.status().unwrap().rto, Duration::from_secs(3));
    drill.advance(2_999);
    drill.silent();
    drill.advance(1);
    assert_eq!(drill.ranges(), [(1, 100)]);
}

#[test]
fn both_may_open_at_once() {
    let mut drill = Drill::connect(reference(|_| {}));
    drill.sent();
    drill.peer(SYN, 0, 0, &[]);
    let answer = drill.sent();
    assert_eq!((answer.flags, answer.seq, answer.ack), (SYN | ACK, 0, 1));
    assert_eq!(drill.status().unwrap().state, TcpState::SynReceived);
    drill.peer(ACK, 1, 1, &[]);
    assert_eq!(drill.status().unwrap().state, TcpState::Established);
    assert_eq!(drill.events, [TcpEvent::Connected(drill.id())]);
}

#[test]
fn a_listener_answers_agrees_only_to_what_was_offered_and_answers_again() {
    let mut drill = Drill::listening(TcpPreset::LinuxLike.config());
    drill.options.mss = Some(1000);
    drill.options.sack_permitted = true;
    drill.peer(SYN, 0, 0, &[]);
    let answer = drill.sent();
    assert_eq!((answer.flags, answer.ack), (SYN | ACK, 1));
    let options = answer.options;
    assert!(options.sack_permitted);
    assert_eq!((options.window_scale, options.timestamps), (None, None));
    assert_eq!(drill.events, [], "not yet");
    drill.peer(SYN, 0, 0, &[]);
    assert_eq!(drill.sent().flags, SYN | ACK, "the first was lost");
    drill.options = TcpOptions::default();
    drill.peer(ACK, 1, 1, &[]);
    assert!(matches!(drill.events[..], [TcpEvent::Incoming { .. }]));
    drill.write(5_000);
    assert_eq!(drill.ranges()[0], (1, 1000), "the peer's mss");
}

#[test]
fn without_the_option_the_mss_is_536_and_timestamps_take_twelve_of_it() {
    let mut drill = Drill::connect(TcpPreset::NewReno2005.config());
    let stamp = drill.sent().options.timestamps.unwrap().value;
    drill.options.timestamps = Some(Timestamps {
        value: 7,
        echo: stamp,
    });
    drill.peer(SYN | ACK, 0, 1, &[]);
    drill.sent();
    drill.write(5_000);
    let first = drill.sent();
    assert_eq!(first.len, 536 - 12);
    assert_eq!(first.options.timestamps.map(|t| t.echo), Some(7));
}

#[test]
fn windows_are_shifted_only_if_both_offer_it() {
    for (offer, window) in [(None, 65_535), (Some(2), 32_768)] {
        let config = reference(|c| {
            c.window_scaling = true;
            c.receive_buffer = ByteCount(32_768 << 4);
        });
        let mut drill = Drill::connect(config);
        let syn = drill.sent();
        assert_eq!((syn.window, syn.options.window_scale), (65_535, Some(4)));
        drill.options.window_scale = offer;
        drill.options.mss = Some(1460);
        // The window of a SYN is not shifted: one segment of 1460 fits, two do not.
        drill.window = 2_000;
        drill.peer(SYN | ACK, 0, 1, &[]);
        assert_eq!(drill.sent().window, window);
    }
}

#[test]
fn a_reset_refuses_and_a_wrong_acknowledgement_is_reset() {
    let mut drill = Drill::connect(reference(|_| {}));
    drill.sent();
    drill.peer(SYN | ACK, 0, 77, &[]);
    let reset = drill.sent();
    assert_eq!((reset.flags, reset.seq), (RST, 77));
    drill.peer(RST | ACK, 0, 77, &[]);
    drill.peer(RST, 0, 0, &[]);
    drill.silent();
    assert_eq!(closed(&drill), None, "neither acknowledges our SYN");
    drill.peer(RST | ACK, 0, 1, &[]);
    assert_eq!(closed(&drill), Some(TcpCloseReason::Refused));
}

/// Tests RFC 9293, section 3.10.7.1.
#[test]
fn strangers_are_reset_with_numbers_that_they_believe() {
    let mut drill = Drill::new();
    drill.peer_absolute(ACK, TcpSeq(10), TcpSeq(500), b"abc");
    let reset = drill.sent();
    assert_eq!((reset.flags, reset.seq), (RST, 500));
    drill.peer(SYN | FIN, 10, 0, b"abc");
    let reset = drill.sent();
    assert_eq!((reset.flags, reset.seq, reset.ack), (RST | ACK, 0, 10 + 5));
    drill.peer(RST, 10, 0, &[]);
    drill.silent();
    assert_eq!(drill.counters().strangers, 2);
}

#[test]
fn a_full_endpoint_drops_syns_and_forgets_nobody() {
    let mut drill = Drill::listening(reference(|_| {}));
    for port in 0..6 {
        drill.peer_port = 6000 + port;
        drill.peer(SYN, 0, 0, &[]);
    }
    assert_eq!(drill.all_sent().len(), 4);
    assert_eq!(drill.counters().refused, 2);
}

/// Tests RFC 3168, section 6.1.1.
#[test]
fn ecn_is_asked_for_agreed_on_and_not_asked_for_again() {
    let both = TcpFlags::ECE | TcpFlags::CWR;
    let mut drill = Drill::connect(reference(|c| c.ecn = true));
    assert!(drill.sent().has(both));
    drill.advance(3_000);
    assert!(!drill.sent().has(TcpFlags::ECE), "a SYN sent again");
    drill.peer(SYN | ACK | TcpFlags::ECE, 0, 1, &[]);
    assert_eq!(drill.sent().ecn, Ecn::NotCapable, "acknowledgements");
    drill.write(100);
    assert_eq!(drill.sent().ecn, Ecn::Capable);

    let mut listener = Drill::listening(reference(|c| c.ecn = true));
    listener.peer(SYN | both, 0, 0, &[]);
    let answer = listener.sent();
    assert!(answer.has(TcpFlags::ECE) && !answer.has(TcpFlags::CWR));
}

/// Tests RFC 9293, section 3.10.7.4: a passive open that is reset returns to listening.
#[test]
fn an_application_does_not_hear_of_the_end_of_what_it_was_never_told_of() {
    let mut drill = Drill::listening(reference(|_| {}));
    drill.peer(SYN, 0, 0, &[]);
    assert_eq!(drill.sent().flags, SYN | ACK);
    drill.peer(RST, 1, 0, &[]);
    assert_eq!(drill.events, []);
    drill.advance(600_000);
    assert_eq!(drill.all_sent(), []);
}
