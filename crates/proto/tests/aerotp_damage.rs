//! Damage that arrives: what parity corrects, what is asked for again, and what is not believed. Under a seal no damage arrives, so
//! all of it is in the long form.

use super::aerotp_copies::{
    CONNECTED, Fate, RATE, SLOW, TPDUS, by_copy, by_copy_of, config, counters, finished, held_lost,
    run, run_at, without_tail,
};
use super::pair::{Pair, Script, Way, octets};
use super::{aerotp_faults as faults, aerotp_modes as modes};
use fulmar_proto::machine::{AckedWays, Machine, PathId, Sealed, SealedContent, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionConfig};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::{FecStrength, Flags, Header, Outgoing, encode, parse};
use fulmar_proto::wire::{Mode, Port, TpduSeq};

#[test]
fn parity_words_correct_what_the_mode_does_not_ask_for_again() {
    let sent = octets(400_000);
    let with_parity = ConnectionConfig {
        fec_words: FecStrength::from_words(24).expect("a strength"),
        ..modes::config(Mode::QuasiReliable)
    };
    let mut pair = Pair::new(modes::endpoint(), with_parity, modes::lossy(5, 0.0, 1e-4));
    pair.send(with_parity, &sent);
    pair.run(modes::LONG);
    assert_eq!(
        pair.missing(),
        0,
        "24 words correct everything at 1e-4, headers included"
    );
    assert!(pair.received() == sent);

    let mut pair = Pair::new(
        modes::endpoint(),
        modes::config(Mode::QuasiReliable),
        modes::lossy(5, 0.0, 1e-4),
    );
    pair.send(modes::config(Mode::QuasiReliable), &sent);
    pair.run(modes::LONG);
    assert!(
        pair.missing() > 100,
        "without parity 70 % of the TPDUs are lost"
    );
}

#[test]
fn nack_mode_recovers_damage_but_not_loss() {
    let sent = octets(400_000);
    let mut damage = Pair::new(
        modes::endpoint(),
        modes::config(Mode::HybridNack),
        modes::lossy(6, 0.0, 1e-6),
    );
    damage.send(modes::config(Mode::HybridNack), &sent);
    damage.run(modes::LONG);
    assert!(damage.sent(TransmitKind::Retransmission) > 0);
    assert_eq!(damage.missing(), 0);

    let mut loss = Pair::new(
        modes::endpoint(),
        modes::config(Mode::HybridNack),
        modes::lossy(6, 0.1, 1e-9),
    );
    loss.send(modes::config(Mode::HybridNack), &sent);
    loss.run(modes::LONG);
    assert_eq!(loss.sent(TransmitKind::Retransmission), 0);
    assert!(loss.missing() > 10);
}

#[test]
fn a_damaged_copy_before_a_whole_one_costs_no_retransmission() {
    let sent = octets(300_000);
    // At 200 kbit/s the copy comes 60 ms later, which is beyond any reordering.
    for (mode, rate) in CONNECTED
        .map(|mode| [(mode, RATE), (mode, SLOW)])
        .into_iter()
        .flatten()
    {
        let damage = by_copy(|count| {
            if count == 0 {
                Fate::Damaged
            } else {
                Fate::Whole
            }
        });
        let pair = run_at(rate, without_tail(config(mode, 2)), damage, &sent);
        let name = format!("{mode}, {rate:?}");
        assert!(finished(&pair) && pair.received() == sent, "{name}");
        let again = pair.sent(TransmitKind::Retransmission);
        assert_eq!(again, TPDUS, "{name}: the copies alone");
        assert_eq!(held_lost(&counters(&pair, Way::Forward)), 0, "{name}");
        let receiver = counters(&pair, Way::Back);
        assert_eq!(receiver.wire_damaged, TPDUS, "{name}");
        assert_eq!(receiver.residual_damaged, 0, "{name}");
    }
}

#[test]
fn a_tpdu_whose_copies_are_all_damaged_is_asked_for_and_sent_n_times_again() {
    let sent = octets(300_000);
    for mode in [Mode::NearReliable, Mode::HybridNack, Mode::HybridNackMack] {
        let damage = by_copy(|count| {
            if count < 2 {
                Fate::Damaged
            } else {
                Fate::Whole
            }
        });
        let pair = run(without_tail(config(mode, 2)), damage, &sent);
        assert!(finished(&pair) && pair.received() == sent, "{mode}");
        let sender = counters(&pair, Way::Forward);
        assert_eq!(held_lost(&sender), TPDUS, "{mode}: each once");
        assert_eq!(sender.copied_tpdus, 2 * TPDUS, "{mode}");
        assert_eq!(pair.sent(TransmitKind::Retransmission), 3 * TPDUS, "{mode}");
    }
}

#[test]
fn a_tpdu_whose_first_copy_came_damaged_and_whose_last_was_lost_is_sent_again() {
    let sent = octets(300_000);
    for (mode, rate) in [Mode::NearReliable, Mode::HybridNack, Mode::HybridNackMack]
        .map(|mode| [(mode, RATE), (mode, SLOW)])
        .into_iter()
        .flatten()
    {
        // The last TPDU has none behind it whose arrival would tell that its copies passed.
        let last = TpduSeq(u32::MAX - 20).plus(u32::try_from(TPDUS - 1).expect("few"));
        let damage = by_copy_of(move |seq, count| match count {
            0 if seq != last => Fate::Damaged,
            1 if seq != last => Fate::Lost,
            _ => Fate::Whole,
        });
        let pair = run_at(rate, without_tail(config(mode, 2)), damage, &sent);
        let name = format!("{mode}, {rate:?}");
        assert!(finished(&pair) && pair.received() == sent, "{name}");
        let receiver = counters(&pair, Way::Back);
        assert_eq!(
            receiver.residual_damaged + receiver.residual_lost,
            0,
            "{name}"
        );
        let held = held_lost(&counters(&pair, Way::Forward));
        assert_eq!(held, TPDUS - 1, "{name}: each once");
    }
}

#[test]
fn a_damaged_afin_or_reset_changes_nothing() {
    let at = Instant::START + Duration::from_millis(200);
    let mut done = false;
    // A copy of a data TPDU's header with other flags and number: the header check is right and the
    // CRC-32 is not.
    let script: Script = Box::new(move |way, _, now, octets| {
        let mut fates = vec![(faults::DELAY, octets.to_vec())];
        if way == Way::Forward && now >= at && !done {
            done = true;
            let tpdu = parse(octets).expect("ours");
            for flags in [Flags::AFIN, Flags::RST] {
                let header = Header {
                    flags,
                    ..tpdu.header
                };
                let (crc, fec_words) = (true, FecStrength::NONE);
                let mut forged = Vec::new();
                encode(
                    &Outgoing {
                        header,
                        crc,
                        fec_words,
                        block: None,
                        body: &[],
                    },
                    &mut forged,
                );
                *forged.last_mut().expect("a CRC-32") ^= 1;
                fates.push((faults::DELAY, forged));
            }
        }
        fates
    });
    let mut pair = Pair::new(faults::endpoint(), faults::config(), script);
    let sent = octets(1_000_000);
    pair.send(faults::config(), &sent);
    pair.run(Duration::from_secs(60));
    assert!(faults::finished(&pair) && pair.received() == sent);
}

/// Everything that an endpoint sends until `until`, numbered as a session does; nothing is answered.
fn sent_until(
    endpoint: &mut AerotpEndpoint,
    from: Instant,
    until: Instant,
    numbers: &mut u64,
) -> Vec<Instant> {
    let mut now = from;
    let mut left = Vec::new();
    loop {
        while let Some(transmit) = endpoint.poll_transmit(now, &mut Vec::new()) {
            let sealed = Sealed {
                number: *numbers,
                content: SealedContent::Data,
            };
            endpoint.on_sealed(
                now,
                transmit.path,
                sealed,
                ByteCount::from_usize(transmit.len),
            );
            *numbers += 1;
            left.push(now);
        }
        while endpoint.poll_event().is_some() {}
        match endpoint.next_deadline() {
            Some(deadline) if deadline.at <= until => {
                now = deadline.at.max(now);
                endpoint.handle_deadline(now);
            }
            _ => return left,
        }
    }
}

#[test]
fn a_sender_without_answers_goes_on_when_it_hears_that_its_probe_came_damaged() {
    const PATH: PathId = PathId(3);
    for is_mended in [false, true] {
        let mut endpoint = AerotpEndpoint::new(modes::endpoint(), Rng::from_seed(1));
        let ways = AckedWays {
            damaged: true,
            ..AckedWays::default()
        };
        endpoint.number_path(Instant::START, PATH, ways);
        let id = endpoint.connect(Instant::START, PATH, Port(7), modes::config(Mode::Reliable));
        let id = id.expect("sound");
        let data = octets(20_000);
        assert_eq!(endpoint.write(Instant::START, id, &data), Ok(data.len()));
        let (mut numbers, silent) = (0, Instant::START + Duration::from_secs(20));
        let before = sent_until(&mut endpoint, Instant::START, silent, &mut numbers);
        assert_eq!(
            endpoint.path_counters(PATH).stalls,
            1,
            "it asks with one TPDU alone"
        );
        assert!(before.len() < 60, "{}", before.len());
        let last = *before.last().expect("some left");
        let told = last + Duration::from_millis(20);
        if is_mended {
            endpoint.on_mending(told, PATH, numbers - 1);
        } else {
            endpoint.on_damaged(told, PATH, numbers - 1);
        }
        let soon = told + Duration::from_millis(200);
        let after = sent_until(&mut endpoint, told, soon, &mut numbers);
        assert!(after.len() > 10, "mended {is_mended}: {}", after.len());
    }
}
