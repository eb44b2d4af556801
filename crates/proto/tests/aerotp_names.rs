//! Names of connections, and what is cut, on a path that speaks the short form.

use super::frame_link::{DELAY, Link, PATH, PORT, listening, only};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::{Machine, TpduForm, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, ConnectionId, EndpointConfig, Event,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::aerotp::short::{FrameKind, Name, Named, write_full, write_named};
use fulmar_proto::wire::aerotp::{EcnField, Flags, Header};
use fulmar_proto::wire::{Mode, Port, TpduSeq};
use std::collections::BTreeSet;
use std::num::NonZeroU8;

const SECOND: Duration = Duration::from_secs(1);
const CONNECTED: [Mode; 6] = [
    Mode::Unreliable,
    Mode::QuasiReliable,
    Mode::NearReliable,
    Mode::Reliable,
    Mode::HybridNack,
    Mode::HybridNackMack,
];

fn config(mode: Mode) -> ConnectionConfig {
    ConnectionConfig {
        mode,
        ..ConnectionConfig::default()
    }
}

fn header(seq: TpduSeq) -> Header {
    Header {
        source: Port(0),
        destination: PORT,
        seq,
        timestamp: 0,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags: Flags::NONE,
    }
}

fn data_under(named: Named, seq: TpduSeq, body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    write_named(named, &header(seq), &mut content);
    content.extend_from_slice(body);
    content
}

/// The word that there is no connection of this name, in frames of the end that says so.
fn unknown(named: Named) -> Vec<u8> {
    let [high, low] = named.name.0.to_be_bytes();
    vec![0x22, if named.sender_opened { 0x80 } else { 0 }, high, low]
}

#[test]
fn data_has_its_ports_until_the_peer_was_heard_and_its_name_from_then_on() {
    let config = ConnectionConfig {
        tpdu_bytes_max: 1_000,
        ..config(Mode::Reliable)
    };
    let mut link = Link::new(config);
    let octets = vec![7; 300_000];
    let id = link.open(config, &octets);
    assert_eq!(link.ends[0].payload_bytes(id), Some(989));
    link.run(SECOND);
    assert_eq!(link.ends[0].payload_bytes(id), Some(991));
    assert!(link.received[1] == octets);
    let heard = |kind: Option<FrameKind>| kind == Some(FrameKind::Data);
    let data: Vec<_> = link
        .carried
        .iter()
        .filter(|sent| sent.kind == TransmitKind::Source)
        .collect();
    let kinds = || data.iter().map(|sent| only(&sent.octets).kind());
    let in_full = kinds().take_while(|kind| !heard(*kind)).count();
    assert!(in_full > 10, "{in_full} in a round trip");
    assert!(kinds().skip(in_full).all(heard));
    // All but the last fill the content.
    let longest = data[..data.len() - 1]
        .iter()
        .all(|sent| sent.octets.len() == 1_000);
    assert!(longest);
    // Each in a frame of 9 or 11 octets before the payload.
    let overhead = data.iter().map(|sent| sent.octets.len()).sum::<usize>() - octets.len();
    assert_eq!(overhead, 11 * in_full + 9 * (data.len() - in_full));
    let answers = link.carried.iter().filter(|sent| sent.from == 1);
    assert!(answers.clone().count() > 10);
    for answer in answers {
        assert_eq!(only(&answer.octets).kind(), Some(FrameKind::Mack));
    }
}

#[test]
fn repair_symbols_go_by_the_name_and_fit() {
    let k = NonZeroU8::new(20).expect("not zero");
    let config = ConnectionConfig {
        tpdu_bytes_max: 1_000,
        block: BlockPlan::new(k, 4, Duration::from_millis(100)),
        ..config(Mode::QuasiReliable)
    };
    let mut link = Link::new(config);
    let id = link.open(config, &vec![7; 200_000]);
    // A length of 2 octets inside the symbol, and 21 or 11 before it.
    assert_eq!(link.ends[0].payload_bytes(id), Some(977));
    link.run(SECOND);
    assert_eq!(link.ends[0].payload_bytes(id), Some(987));
    assert_eq!(link.received[1].len(), 200_000);
    let repairs = link
        .carried
        .iter()
        .filter(|sent| sent.kind == TransmitKind::Repair);
    let repairs: Vec<_> = repairs.map(|sent| sent.octets.as_slice()).collect();
    assert!(repairs.len() > 40);
    assert!(repairs.iter().all(|content| content.len() <= 1_000));
    let by_name = |content: &&&[u8]| only(content).kind() == Some(FrameKind::Repair);
    let before = repairs
        .iter()
        .take_while(|content| !by_name(content))
        .count();
    assert!(repairs[before..].iter().all(|content| by_name(&content)));
    assert!(
        repairs[before..]
            .iter()
            .any(|content| content.len() == 1_000)
    );
}

#[test]
fn a_name_opens_nothing_and_is_answered_as_unknown() {
    let mut link = Link::new(config(Mode::Reliable));
    let named = Named {
        name: Name::of(Port(50_081), PORT).expect("a dynamic port"),
        sender_opened: true,
    };
    link.inject(1, &data_under(named, TpduSeq(0), b"who?"));
    assert_eq!(link.events[1], []);
    assert_eq!(link.ends[1].endpoint_counters().strangers, 1);
    assert_eq!(link.last_of(1), unknown(named.answered()));
    // Of the other side's: it never opened such a connection.
    let answered = link.count_of(1);
    link.inject(1, &data_under(named.answered(), TpduSeq(0), b"who?"));
    assert_eq!(link.last_of(1), unknown(named));
    assert_eq!(link.count_of(1), answered + 1);
    // The word itself is not answered, whatever it names.
    for content in [unknown(named), unknown(named.answered())] {
        link.inject(1, &content);
        assert_eq!(link.count_of(1), answered + 1);
    }
}

#[test]
fn on_a_path_that_speaks_the_long_form_an_unknown_name_is_not_answered() {
    let mut link = Link::new(config(Mode::Reliable));
    link.speak(1, TpduForm::Long);
    let named = Named {
        name: Name(77),
        sender_opened: true,
    };
    link.inject(1, &data_under(named, TpduSeq(0), b"who?"));
    assert_eq!(link.count_of(1), 0);
}

#[test]
fn a_peer_that_knows_nothing_of_a_connection_ends_it_as_by_a_reset() {
    for by_word in [true, false] {
        let config = config(Mode::Reliable);
        let mut link = Link::new(config);
        let id = link.open(config, b"once");
        link.run(SECOND);
        assert_eq!(link.received[1], b"once");
        if by_word {
            link.inject(0, &unknown(link.name().answered()));
        } else {
            link.ends[1] = listening(3, config);
            link.speak(1, TpduForm::Short);
            link.events[1].clear();
            let written = link.call(0, |end, now| end.write(now, id, b"again"));
            assert_eq!(written, Ok(5));
            link.run(SECOND);
            assert_eq!(link.events[1], [], "no name opens anything");
        }
        assert_eq!(link.ended(0), Some(CloseReason::Reset));
        assert_eq!(link.ends[0].connection_count(), 0);
    }
}

#[test]
fn a_connection_that_is_over_answers_under_its_name_while_it_is_remembered() {
    let config = config(Mode::Reliable);
    let mut link = Link::new(config);
    let id = link.open(config, b"question");
    link.run(SECOND);
    let other = ConnectionId(0);
    let written = link.call(1, |end, now| end.write(now, other, b"answer"));
    assert_eq!(written, Ok(6));
    link.call(0, |end, now| end.close(now, id));
    link.run(30 * SECOND);
    for side in [0, 1] {
        assert_eq!(link.ended(side), Some(CloseReason::Finished));
        assert_eq!(link.ends[side].connection_count(), 0, "TIME-WAIT");
    }
    let named = link.name();
    let late = |link: &mut Link, to: usize| {
        let named = if to == 1 { named } else { named.answered() };
        link.inject(to, &data_under(named, TpduSeq(0), b"late"));
        link.last_of(to).to_vec()
    };
    for (side, opened) in [(0, 0x80), (1, 0)] {
        // AFINACK: one TPDU of each direction was received.
        let answer = late(&mut link, side);
        let [high, low] = named.name.0.to_be_bytes();
        assert_eq!(answer[..7], [0x20, opened | 0x20, high, low, 0, 0, 1]);
        assert_eq!(answer.len(), 14);
        // A TPDU that the other end never sent in that connection is not confirmed.
        let count = link.count_of(side);
        let frame = if side == 1 { named } else { named.answered() };
        link.inject(side, &data_under(frame, TpduSeq(2), b"unsent"));
        assert_eq!(link.count_of(side), count);
    }
    link.run(121 * SECOND);
    for side in [0, 1] {
        link.ends[side].handle_deadline(link.now);
        let asked = if side == 1 { named } else { named.answered() };
        assert_eq!(late(&mut link, side), unknown(asked.answered()));
    }
    assert_eq!(link.received, [b"answer".to_vec(), b"question".to_vec()]);
}

#[test]
fn connections_to_ports_of_one_remainder_have_names_of_their_own() {
    let settings = EndpointConfig {
        connections_max: 4_000,
        ..EndpointConfig::default()
    };
    let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(9));
    endpoint.speak(Instant::START, PATH, TpduForm::Short);
    let mut names = BTreeSet::new();
    // Of 3,000 ports drawn at random from 16,384, some 250 come twice.
    for nth in 0..3_000_u16 {
        let port = Port(4_000 + nth % 3 * 4);
        let opened = endpoint.connect(Instant::START, PATH, port, config(Mode::Reliable));
        let id = opened.expect("room");
        let mut content = Vec::new();
        let written = endpoint.write(Instant::START, id, b"first");
        assert_eq!(written, Ok(5));
        // All within TIME-WAIT.
        let now = Instant::START + 2 * DELAY * u32::from(nth);
        while endpoint.poll_transmit(now, &mut content).is_none() {}
        let ports = only(&content).fields();
        let source = Port(u16::from_be_bytes([ports[0], ports[1]]));
        assert_eq!(port, Port(u16::from_be_bytes([ports[2], ports[3]])));
        assert!(names.insert(Name::of(source, port)), "{source} to {port}");
        endpoint.abort(now, id);
        while endpoint.poll_transmit(now, &mut content).is_some() {}
    }
}

/// A number counts as 2^23 late at most; one that is later falls beyond every window.
#[test]
fn a_datagram_that_is_half_the_numbers_late_or_more_is_delivered_nowhere() {
    for mode in CONNECTED {
        for late in [1 << 23, (1 << 23) + 1, (1 << 24) - (1 << 17)] {
            for full in [false, true] {
                let first = TpduSeq(1 << 25);
                let config = ConnectionConfig {
                    first_seq: first,
                    window_tpdus: 1 << 15,
                    ..config(mode)
                };
                let mut link = Link::new(config);
                let id = link.open(config, b"in time");
                link.run(SECOND / 10);
                let seq = TpduSeq(first.0 + 1 - late);
                let content = if full {
                    let header = Header {
                        source: link.opener(),
                        mode,
                        ..header(seq)
                    };
                    let mut content = Vec::new();
                    write_full(&header, &mut content);
                    content.extend_from_slice(b"too late");
                    content
                } else {
                    data_under(link.name(), seq, b"too late")
                };
                link.inject(1, &content);
                link.run(SECOND / 10);
                let name = format!("{mode}, {late}, in full: {full}");
                assert_eq!(link.received[1], b"in time", "{name}");
                let counters = link.ends[1].path_counters(PATH);
                let dropped = (counters.duplicates, counters.beyond_window);
                let expected = if late == 1 << 23 { (1, 0) } else { (0, 1) };
                assert_eq!(dropped, expected, "{name}");
                let written = link.call(0, |end, now| end.write(now, id, b", and more"));
                assert_eq!(written, Ok(10));
                link.run(SECOND);
                assert_eq!(link.received[1], b"in time, and more", "{name}");
            }
        }
    }
}

#[test]
fn a_port_where_nobody_listens_is_no_silence() {
    for octets in [&b""[..], b"?"] {
        let config = config(Mode::Reliable);
        let mut link = Link::new(config);
        link.call(0, |end, now| {
            let id = end.connect(now, PATH, Port(PORT.0 + 1), config);
            let written = end.write(now, id.expect("room"), octets);
            assert_eq!(written, Ok(octets.len()));
        });
        // A pure ASYN is a header alone.
        let longest = if octets.is_empty() { 17 } else { 12 };
        assert_eq!(link.carried[0].octets.len(), longest);
        link.run(SECOND);
        assert_eq!(link.ended(0), Some(CloseReason::Reset));
    }
}

/// Whichever end changes first, and whatever is under way then.
#[test]
fn the_ends_change_forms_one_after_the_other_in_mid_transfer() {
    for (first, mode) in [
        (0, Mode::Reliable),
        (1, Mode::Reliable),
        (0, Mode::HybridNackMack),
    ] {
        let config = config(mode);
        let mut link = Link::new(config);
        link.speak(0, TpduForm::Long);
        link.speak(1, TpduForm::Long);
        let octets: Vec<u8> = (0..4_000_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        let id = link.open(config, &octets);
        let mut form = TpduForm::Long;
        for _ in 0..4 {
            form = match form {
                TpduForm::Long => TpduForm::Short,
                TpduForm::Short => TpduForm::Long,
            };
            link.run(SECOND / 10);
            link.speak(first, form);
            link.run(SECOND / 7);
            link.speak(1 - first, form);
        }
        link.run(SECOND);
        assert!(
            link.received[1] == octets,
            "{} octets",
            link.received[1].len()
        );
        let again = link
            .carried
            .iter()
            .filter(|sent| sent.kind == TransmitKind::Retransmission);
        assert_eq!(again.count(), 0, "{mode}, {first} first");
        let rtt = link.ends[0].rtt(id).expect("measured");
        assert!((2 * DELAY..3 * DELAY).contains(&rtt), "{rtt:?}");
        assert_eq!(link.ended(0), None);
    }
}

/// The clock of 24 bits of 16 us turns every 268 s.
#[test]
fn long_silence_neither_ends_a_connection_nor_spoils_its_round_trip() {
    for mode in [Mode::Reliable, Mode::HybridNackMack] {
        let config = config(mode);
        let mut link = Link::new(config);
        let id = link.open(config, b"a");
        for pause in [1, 133, 135, 267, 268, 269, 540, 4_300] {
            link.run(pause * SECOND);
            let written = link.call(0, |end, now| end.write(now, id, &[b'b'; 5_000]));
            assert_eq!(written, Ok(5_000));
        }
        link.run(SECOND);
        assert_eq!(link.received[1].len(), 40_001);
        let rtt = link.ends[0].rtt(id).expect("measured");
        assert!((2 * DELAY..3 * DELAY).contains(&rtt), "{mode}: {rtt:?}");
        let again = link
            .carried
            .iter()
            .filter(|sent| sent.kind == TransmitKind::Retransmission);
        assert_eq!(again.count(), 0, "{mode}");
    }
}

#[test]
fn datagrams_without_a_connection_have_their_ports_in_full() {
    let config = config(Mode::Datagram);
    let mut link = Link::new(config);
    for octets in [&b"here"[..], b"", b"and there"] {
        link.call(0, |end, now| {
            let id = end.connect(now, PATH, PORT, config).expect("room");
            assert_eq!(end.write_message(now, id, octets), Ok(true));
        });
        link.run(SECOND);
        let content = link.last_of(0);
        assert_eq!(only(content).kind(), Some(FrameKind::Full));
        assert_eq!(content.len(), 11 + octets.len());
        let got = link.events[1].last();
        let is_it = |event: &Event| matches!(event, Event::Datagram { local: PORT, octets: got, ordinal: 0, .. } if got == octets);
        assert!(got.is_some_and(is_it), "{got:?}");
    }
}
