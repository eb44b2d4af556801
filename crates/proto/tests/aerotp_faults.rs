//! Outages, reordering and duplicates: slow is allowed, wrong is not.

use super::pair::{Pair, Script, Way, octets};
use super::sight::tpdu;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AckStyle, CloseReason, ConnectionConfig, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::TpduKind;
use std::cell::Cell;
use std::rc::Rc;

pub(crate) const DELAY: Duration = Duration::from_millis(20);

pub(crate) fn endpoint() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(5_000_000)),
        ..EndpointConfig::default()
    }
}

pub(crate) fn config() -> ConnectionConfig {
    ConnectionConfig {
        mode: Mode::Reliable,
        give_up_after: Duration::from_secs(600),
        ..ConnectionConfig::default()
    }
}

pub(crate) fn finished(pair: &Pair) -> bool {
    let done = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::Finished,
                ..
            }
        )
    };
    pair.events(Way::Forward).iter().any(done)
}

#[test]
fn during_an_outage_only_probes_go_out_and_afterwards_sending_resumes_within_a_second() {
    let from = Instant::START + Duration::from_secs(1);
    for span in [20, 60, 600].map(Duration::from_secs) {
        let until = from + span;
        let last = Rc::new(Cell::new(None));
        let in_burst = Rc::new(Cell::new(0_u32));
        let (seen, most) = (last.clone(), in_burst.clone());
        let script: Script = Box::new(move |way, _, now, octets| {
            if way == Way::Forward && now >= until {
                let at_once = match seen.replace(Some((now, 1))) {
                    Some((at, count)) if at == now => count + 1,
                    _ => 1,
                };
                seen.set(Some((now, at_once)));
                most.set(most.get().max(at_once));
            }
            if now >= from && now < until {
                Vec::new()
            } else {
                vec![(DELAY, octets.to_vec())]
            }
        });
        let config = ConnectionConfig {
            give_up_after: Duration::from_secs(3600),
            ..config()
        };
        let mut pair = Pair::new(endpoint(), config, script);
        let sent = octets(2_000_000);
        pair.send(config, &sent);
        // Until its timeout the sender cannot know of the outage.
        pair.run_until(from + Duration::from_millis(500));
        let tpdus =
            |pair: &Pair| pair.sent(TransmitKind::Source) + pair.sent(TransmitKind::Retransmission);
        let before = tpdus(&pair);
        pair.run_until(until);
        let probes = tpdus(&pair) - before;
        let most_probes = span.as_secs() * 2 + 10;
        assert!(
            (span.as_secs()..=most_probes).contains(&probes),
            "{probes} probes in {span:?}"
        );
        let got = pair.received().len();
        pair.run_until(until + Duration::from_secs(1));
        // The probe's interval, a round trip, then half a second and more at 5 mbit.
        let more = pair.received().len() - got;
        assert!(more > 200_000, "{more} octets in the first second");
        assert_eq!(in_burst.get(), 1, "the pacer spaces what is sent again");
        pair.run(Duration::from_secs(60));
        assert!(finished(&pair) && pair.received() == sent);
        let probes_lost = pair.sent(TransmitKind::Retransmission) - probes;
        assert!(probes_lost < 200, "{probes_lost} beside the probes");
    }
}

#[test]
fn reordering_is_learned_and_then_costs_no_retransmissions() {
    let mut rng = Rng::from_seed(1).child("jitter");
    let script: Script = Box::new(move |way, _, _, octets| {
        let late = if way == Way::Forward && rng.chance(0.05) {
            6
        } else {
            0
        };
        vec![(DELAY + Duration::from_millis(late), octets.to_vec())]
    });
    // Repetitions of the tail would be counted too.
    let config = ConnectionConfig {
        tail_repeats: 0,
        ..config()
    };
    let mut pair = Pair::new(endpoint(), config, script);
    let sent = octets(4_000_000);
    pair.send(config, &sent);
    pair.run(Duration::from_secs(60));
    assert!(finished(&pair) && pair.received() == sent);
    let spurious = pair.sent(TransmitKind::Retransmission);
    assert!(
        spurious < 20,
        "{spurious} of about 137 late TPDUs were sent again"
    );
}

#[test]
fn duplicates_and_wild_reordering_change_nothing_that_is_delivered() {
    for seed in 1..=20 {
        let mut rng = Rng::from_seed(seed).child("chaos");
        let script: Script = Box::new(move |_, _, _, octets| {
            let copies = [0, 1, 1, 1, 2, 3][usize::try_from(rng.below(6)).expect("in range")];
            (0..copies)
                .map(|_| (Duration::from_micros(rng.below(200_000)), octets.to_vec()))
                .collect()
        });
        let mut pair = Pair::new(endpoint(), config(), script);
        let sent = octets(100_000);
        pair.send(config(), &sent);
        pair.run(Duration::from_secs(600));
        assert!(finished(&pair), "seed {seed}");
        assert!(pair.received() == sent, "seed {seed}");
        let incoming = |e: &&Event| matches!(e, Event::Incoming { .. });
        assert_eq!(
            pair.events(Way::Back).iter().filter(incoming).count(),
            1,
            "seed {seed}"
        );
    }
}

#[test]
fn the_papers_listed_acknowledgements_complete_a_transfer_too() {
    for every in [1, 8, 365] {
        let ack = AckPolicy {
            every,
            style: AckStyle::Listed,
            ..AckPolicy::default()
        };
        let listed = ConnectionConfig { ack, ..config() };
        let mut rng = Rng::from_seed(u64::from(every)).child("loss");
        let script: Script = Box::new(move |_, _, _, octets| {
            if rng.chance(0.2) {
                Vec::new()
            } else {
                vec![(DELAY, octets.to_vec())]
            }
        });
        let mut pair = Pair::new(endpoint(), listed, script);
        let sent = octets(300_000);
        pair.send(listed, &sent);
        pair.run(Duration::from_secs(600));
        assert!(
            finished(&pair) && pair.received() == sent,
            "MACK of {every}"
        );
    }
}

#[test]
fn modes_that_may_lose_data_go_on_after_an_outage_longer_than_the_window() {
    let from = Instant::START + Duration::from_secs(1);
    let until = from + Duration::from_secs(2);
    for mode in [Mode::Unreliable, Mode::QuasiReliable, Mode::HybridNack] {
        let config = ConnectionConfig {
            mode,
            window_tpdus: 64,
            ..config()
        };
        let script: Script = Box::new(move |way, _, now, octets| {
            if way == Way::Forward && now >= from && now < until {
                Vec::new()
            } else {
                vec![(DELAY, octets.to_vec())]
            }
        });
        let mut pair = Pair::new(endpoint(), config, script);
        let sent = octets(3_000_000); // about 5 s
        pair.send(config, &sent);
        pair.run(Duration::from_secs(30));
        let got = pair.received().len();
        assert!(
            got > sent.len() / 2 && got < sent.len(),
            "{mode:?}: {got} of {} octets",
            sent.len()
        );
        assert!(
            pair.received().ends_with(&sent[sent.len() - 10_000..]),
            "{mode:?}"
        );
        assert!(finished(&pair), "{mode:?}");
    }
}

#[test]
fn an_end_that_lies_beyond_the_window_is_still_reached() {
    let from = Instant::START + Duration::from_secs(1);
    let until = from + Duration::from_secs(4);
    let config = ConnectionConfig {
        mode: Mode::Unreliable,
        window_tpdus: 64,
        ..config()
    };
    let script: Script = Box::new(move |way, _, now, octets| {
        if way == Way::Forward && now >= from && now < until {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    });
    let mut pair = Pair::new(endpoint(), config, script);
    pair.send(config, &octets(3_000_000)); // the last 60 % fall into the outage
    pair.run(Duration::from_secs(30));
    let ended = |e: &Event| matches!(e, Event::PeerFinished(_));
    assert!(pair.events(Way::Back).iter().any(ended));
}

#[test]
fn forty_minutes_of_silence_do_not_make_fresh_timestamps_look_old() {
    let script: Script = Box::new(|_, _, _, octets| vec![(DELAY, octets.to_vec())]);
    let mut pair = Pair::new(endpoint(), config(), script);
    pair.connect_only(config());
    let more = octets(100_000);
    for _ in 0..2 {
        pair.app(Way::Forward, |endpoint, now, id| {
            let taken = endpoint.write(now, id, &more);
            assert_eq!(taken, Ok(more.len()));
        });
        pair.run(Duration::from_secs(40 * 60));
    }
    assert_eq!(pair.received().len(), 2 * more.len());
    assert_eq!(pair.sent(TransmitKind::Retransmission), 0);
}

const AFINACK: TpduKind = TpduKind::Mack {
    asyn: false,
    afin: true,
};

fn kind_of(octets: &[u8]) -> TpduKind {
    tpdu(octets).expect("our own").kind()
}

/// A script that loses the datagrams that `lost` names.
fn losing(lost: impl Fn(Way, Instant, &[u8]) -> bool + 'static) -> Script {
    Box::new(move |way, _, now, octets| {
        if lost(way, now, octets) {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    })
}

#[test]
fn a_lost_window_update_is_repaired_when_there_is_new_data_and_nothing_in_flight() {
    let small = ConnectionConfig {
        window_tpdus: 16,
        ..config()
    };
    let lost = Rc::new(Cell::new(false));
    let is_lost = Rc::clone(&lost);
    let script = losing(move |way, _, _| way == Way::Back && is_lost.get());
    let mut pair = Pair::new(endpoint(), small, script);
    pair.stop_reading();
    pair.connect_only(small);
    // Once the peer is heard, payloads stay as long as they are.
    pair.run(DELAY * 4);
    let id = pair.id(Way::Forward).expect("connected");
    let payload = pair.endpoint(Way::Forward).payload_bytes(id);
    let payload = payload.expect("connected");
    let sent = octets(17 * payload);
    pair.app(Way::Forward, |endpoint, now, id| {
        let filling = endpoint.write(now, id, &sent[..16 * payload]);
        assert_eq!(filling, Ok(16 * payload));
    });
    pair.run(Duration::from_secs(2));
    lost.set(true);
    let mut got = Vec::new();
    pair.app(Way::Back, |endpoint, now, id| {
        while let Some(chunk) = endpoint.read(now, id) {
            got.extend(chunk.octets);
        }
    });
    lost.set(false);
    assert_eq!(got.len(), 16 * payload, "the window was full");
    pair.app(Way::Forward, |endpoint, now, id| {
        assert_eq!(endpoint.write(now, id, &sent[16 * payload..]), Ok(payload));
    });
    // Long before the first keep-alive.
    pair.run(Duration::from_secs(2));
    pair.app(Way::Back, |endpoint, now, id| {
        while let Some(chunk) = endpoint.read(now, id) {
            got.extend(chunk.octets);
        }
    });
    assert!(got == sent, "{} of {} octets", got.len(), sent.len());
}

#[test]
fn an_end_of_which_only_the_last_answer_falls_into_an_outage_is_an_end_all_the_same() {
    let cut = Cell::new(false);
    let script = losing(move |way, _, octets| {
        cut.set(cut.get() || (way == Way::Back && kind_of(octets) == TpduKind::Afin));
        way == Way::Forward && cut.get()
    });
    let mut pair = Pair::new(endpoint(), config(), script);
    let sent = octets(50_000);
    pair.send(config(), &sent);
    pair.run(config().give_up_after * 2);
    assert!(pair.received() == sent);
    for way in [Way::Forward, Way::Back] {
        let last = pair.events(way).last();
        let finished = |event: &Event| {
            matches!(
                event,
                Event::Closed {
                    why: CloseReason::Finished,
                    ..
                }
            )
        };
        assert!(last.is_some_and(finished), "{way:?}: {last:?}");
        assert_eq!(pair.endpoint(way).connection_count(), 0);
    }
}

#[test]
fn a_listed_acknowledgement_in_two_datagrams_holds_nothing_for_lost() {
    // 25 numbers fit a TPDU of 120 octets, and 60 arrivals are told at once.
    let ack = AckPolicy {
        every: 60,
        style: AckStyle::Listed,
        flush: Duration::from_millis(200),
        ..AckPolicy::default()
    };
    let listed = ConnectionConfig {
        ack,
        tpdu_bytes_max: 120,
        ..config()
    };
    let mut pair = Pair::new(endpoint(), listed, losing(|_, _, _| false));
    let sent = octets(100_000);
    pair.send(listed, &sent);
    pair.run(Duration::from_secs(60));
    assert!(finished(&pair) && pair.received() == sent);
    assert_eq!(pair.sent(TransmitKind::Retransmission), 0);
}

#[test]
fn every_arrival_is_told_in_listed_acknowledgements_of_the_largest_size() {
    let ack = AckPolicy {
        every: 365,
        style: AckStyle::Listed,
        flush: Duration::from_secs(10),
        ..AckPolicy::default()
    };
    let listed = ConnectionConfig { ack, ..config() };
    let mut pair = Pair::new(endpoint(), listed, losing(|_, _, _| false));
    pair.connect_only(listed);
    let id = pair.id(Way::Forward).expect("connecting");
    // The first is told by the ASYNACK.
    for count in [1, 365] {
        let payload = pair.endpoint(Way::Forward).payload_bytes(id);
        let sent = octets(count * payload.expect("it is there"));
        pair.app(Way::Forward, |endpoint, now, id| {
            assert_eq!(endpoint.write(now, id, &sent), Ok(sent.len()));
        });
        pair.run(Duration::from_millis(100));
    }
    // 365 TPDUs take 0.88 s; the flush timer is far off.
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.endpoint(Way::Forward).is_settled(id), Some(true));
}

#[test]
fn the_last_answers_may_fall_into_an_outage() {
    let script = losing(|way, now, octets| {
        let early = now < Instant::START + Duration::from_secs(30);
        way == Way::Forward && early && kind_of(octets) == AFINACK
    });
    let mut pair = Pair::new(endpoint(), config(), script);
    let sent = octets(100_000);
    pair.send(config(), &sent);
    pair.run_until(Instant::START + Duration::from_secs(29));
    assert!(finished(&pair), "the sender is done");
    assert_eq!(pair.endpoint(Way::Forward).connection_count(), 0, "gone");
    pair.run_until(Instant::START + Duration::from_secs(40));
    let ended = |e: &Event| {
        let why = CloseReason::Finished;
        matches!(e, Event::Closed { why: w, .. } if *w == why)
    };
    assert!(pair.events(Way::Back).iter().any(ended));
}

#[test]
fn an_end_beyond_the_window_is_reached_once_what_was_unread_is_read() {
    let config = ConnectionConfig {
        mode: Mode::Unreliable,
        window_tpdus: 64,
        ..config()
    };
    let from = Instant::START + Duration::from_secs(1);
    let script = losing(move |way, now, octets| {
        let is_end = matches!(kind_of(octets), TpduKind::Afin | AFINACK);
        way == Way::Forward && now >= from && !is_end
    });
    let mut pair = Pair::new(endpoint(), config, script);
    pair.stop_reading();
    pair.send(config, &octets(3_000_000)); // 80 % are lost, the AFIN is not
    pair.run(Duration::from_secs(30));
    let ended = |e: &Event| matches!(e, Event::PeerFinished(_));
    assert!(!pair.events(Way::Back).iter().any(ended), "unread");
    let mut chunks = 0;
    pair.app(Way::Back, |endpoint, now, id| {
        while endpoint.read(now, id).is_some() {
            chunks += 1;
        }
    });
    assert_eq!(chunks, 64);
    pair.run(Duration::from_secs(5));
    assert!(pair.events(Way::Back).iter().any(ended));
}
