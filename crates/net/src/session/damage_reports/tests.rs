//! Reports of damage: their content, their times, and what is left out.

use super::*;
use fulmar_proto::rng::Rng;

const KEYS: u32 = 7;
const OCTETS: usize = 1_455;

fn at(micros: u64) -> Instant {
    Instant::START + Duration::from_micros(micros)
}

fn words(words: u16) -> FecStrength {
    FecStrength::from_words(words).expect("a strength")
}

fn agreed() -> DamageReports {
    let said = [damaged()];
    let mut reports = DamageReports::default();
    assert!(reports.agree(&said, &said, true));
    reports
}

fn way() -> WayBack {
    WayBack {
        keys: KEYS,
        ..WayBack::default()
    }
}

/// The report that is due, as its counters and the recent rate.
fn told(reports: &mut DamageReports, now: Instant) -> Option<(Vec<u64>, f64)> {
    if !reports.is_due(now) {
        return None;
    }
    let mut claims = Vec::new();
    let report = reports.take(now, way(), &mut claims);
    let rate = report.word.recent.rate().value();
    Some((report.counters().collect(), rate))
}

/// Wrong bits of a datagram at a rate, by the waiting times between them.
fn draw(rng: &mut Rng, rate: f64) -> u32 {
    let (mut errors, mut bit) = (0, 0.0);
    loop {
        bit += -(1.0 - rng.unit_f64()).ln() / rate;
        if bit > 8.0 * OCTETS as f64 {
            return errors;
        }
        errors += 1;
    }
}

/// Datagrams every 2.4 ms, as at 5 mbit, at a rate of which nothing was known: it is told within a few, and stays near.
#[test]
fn the_rate_that_is_told_is_the_one_that_is_there() {
    for rate in [1e-5, 1e-4, 1e-3] {
        let mut reports = agreed();
        let mut rng = Rng::from_seed(33).child("bits");
        let (mut last, mut sum, mut count) = (0.0, 0.0, 0.0);
        for n in 0..4_000 {
            let now = at(2_400 * n);
            let wrong = draw(&mut rng, rate);
            // Six words correct two octets in each of six codewords: so few in all are always mended here.
            if wrong <= 8 {
                reports.on_genuine(now, (KEYS, n), OCTETS, wrong);
            } else {
                let beyond = Beyond::codewords(OCTETS, words(6), 2, wrong.saturating_sub(6));
                reports.on_beyond_repair(now, (KEYS, n), beyond);
            }
            reports.on_asked(now, Asks::Often);
            if let Some((_, told)) = told(&mut reports, now) {
                last = told;
            }
            if n > 1_000 {
                sum += last;
                count += 1.0;
            }
        }
        let ratio = sum / count / rate;
        println!("{rate}: {ratio:.3}");
        assert!((0.5..2.0).contains(&ratio), "{rate}: {ratio}");
    }
}

#[test]
fn a_clean_channel_is_told_of_once_a_second_and_only_while_data_comes() {
    let mut reports = agreed();
    let mut times = Vec::new();
    for n in 0..5_000 {
        let now = at(1_000 * n);
        reports.on_genuine(now, (KEYS, n), OCTETS, 0);
        if n < 3_000 {
            reports.on_asked(now, Asks::Often);
        }
        reports.on_asked(now, Asks::Nothing);
        if let Some((claims, rate)) = told(&mut reports, now) {
            assert!(claims.is_empty() && rate < 1e-6);
            times.push(n);
        }
    }
    // 18 datagrams are 200,000 bits.
    assert_eq!(times, [17, 1_017, 2_017, 3_017]);
}

#[test]
fn a_datagram_beyond_repair_is_claimed_at_once_and_then_every_ten_milliseconds() {
    let mut reports = agreed();
    let beyond = Beyond::all(OCTETS, words(3));
    reports.on_beyond_repair(at(0), (KEYS, 5), beyond);
    reports.on_beyond_repair(at(0), (KEYS, 5), beyond);
    let (claims, rate) = told(&mut reports, at(0)).expect("at once");
    assert_eq!(claims, [5]);
    assert!(rate > 1e-4, "{rate}");
    for counter in 6..100 {
        reports.on_beyond_repair(at(1_000), (KEYS, counter), beyond);
    }
    // Of other keys than those that the report is under.
    reports.on_beyond_repair(at(1_000), (KEYS + 1, 100), beyond);
    assert_eq!(told(&mut reports, at(9_999)), None);
    assert_eq!(reports.next_at(), Some(at(10_000)));
    let (claims, _) = told(&mut reports, at(10_000)).expect("it is time");
    assert_eq!(claims.len(), CLAIMS_MAX, "no more wait");
    assert_eq!(reports.inward().beyond_repair, 96);
    assert_eq!(reports.next_at(), None);
}

#[test]
fn a_claim_is_taken_back_when_the_datagram_comes_and_its_damage_was_none() {
    let mut reports = agreed();
    for n in 0..1_000 {
        reports.on_genuine(at(1_000 * n), (KEYS, n), OCTETS, 0);
    }
    let now = at(1_000_000);
    // Told just now: what comes next waits 10 ms.
    reports.on_asked(now, Asks::Often);
    let before = told(&mut reports, now).expect("it is due").1;
    for n in 1_000..1_050 {
        reports.on_beyond_repair(now, (KEYS, n), Beyond::all(OCTETS, words(255)));
        reports.on_genuine(now, (KEYS, n), OCTETS, 0);
    }
    let (claims, rate) = told(&mut reports, at(1_010_000)).expect("there were claims");
    assert!(claims.is_empty(), "{claims:?}");
    assert!(rate <= before, "{rate}, {before}");
    assert_eq!(reports.inward().beyond_repair, 0);
}

#[test]
fn nothing_is_told_without_the_word_of_both() {
    for (ours, theirs, is_in_two) in [
        (true, false, true),
        (false, true, true),
        (true, true, false),
    ] {
        let said = |is_said: bool| is_said.then(damaged).into_iter().collect::<Vec<_>>();
        let mut reports = DamageReports::default();
        assert!(!reports.agree(&said(ours), &said(theirs), is_in_two));
        reports.on_beyond_repair(at(0), (KEYS, 5), Beyond::all(OCTETS, words(3)));
        reports.on_genuine(at(1), (KEYS, 6), OCTETS, 8);
        reports.on_asked(at(1), Asks::Often);
        assert_eq!(reports.next_at(), None);
        assert!(reports.claims.is_empty());
        let mut claims = Vec::new();
        let report = agreed().take(at(0), way(), &mut claims);
        assert_eq!(reports.read(&report), None);
    }
}

#[test]
fn totals_grow_past_2_32_and_old_ones_are_left_aside() {
    let mut reports = agreed();
    let tell = |reports: &mut DamageReports, counts| {
        let report = DamageReport {
            slot: PathSlot::FIRST,
            word: ChannelWord::from_octets([0; 4]),
            counts,
            claims: &[],
        };
        reports.read(&report).is_some()
    };
    let half = 1 << 30;
    assert!(tell(&mut reports, [half, 1, 1, 9]));
    for step in 2..6_u32 {
        assert!(tell(&mut reports, [half.wrapping_mul(step), 1, 1, 9]));
    }
    assert!(
        !tell(&mut reports, [half.wrapping_mul(4), 1, 1, 9]),
        "older"
    );
    let outward = reports.outward();
    assert_eq!((outward.whole, outward.mended), (5 << 30, 1));
    // The peer starts again.
    reports.begin_again();
    assert!(tell(&mut reports, [10, 0, 0, 0]));
    assert_eq!(reports.outward().whole, (5 << 30) + 10);
}

#[test]
fn a_peer_that_counted_for_days_is_heard_by_an_end_that_has_just_started() {
    let mut reports = agreed();
    for whole in [3 << 30, (3 << 30) + 7] {
        let report = DamageReport {
            slot: PathSlot::FIRST,
            word: ChannelWord::from_octets([0; 4]),
            counts: [whole, 0, 0, 0],
            claims: &[],
        };
        assert!(reports.read(&report).is_some());
    }
    assert_eq!(reports.outward().whole, 7);
}

#[test]
fn a_datagram_that_is_still_beyond_repair_is_claimed_once_in_a_report() {
    let mut reports = agreed();
    for _ in 0..3 {
        reports.claim_again(at(0), (KEYS, 1), 1);
    }
    reports.claim_again(at(0), (KEYS, 2), 1);
    assert_eq!(reports.claims.len(), 2);
}

#[test]
fn octets_put_right_later_are_counted_once_they_are() {
    let mut reports = agreed();
    // Further parity that does not suffice puts nothing right.
    reports.claim_again(at(0), (KEYS, 1), 5);
    assert_eq!(reports.inward.corrected_symbols, 0);
    // Of three wrong octets that were mended one was known of.
    reports.on_mended_later(at(10), 3, 2);
    assert_eq!(reports.inward.corrected_symbols, 3);
}
