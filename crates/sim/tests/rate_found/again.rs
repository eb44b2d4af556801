//! Rates that were found far too low on a link that is ours: the search begins again where a train showed much more.

use super::*;

/// The time from `from` until half a second at four fifths of `rate` is sent.
fn reached(outcome: &SenderOutcome, from: f64, rate: f64) -> f64 {
    let after = |tenth: &(usize, &[u64])| tenth.0 as f64 / 10.0 >= from;
    let is_there = |sent: &[u64]| sent.iter().sum::<u64>() as f64 * 16.0 > 0.8 * rate;
    let spans = outcome.sent_tenths.windows(5).enumerate().filter(after);
    let mut there = spans.filter(|(_, sent)| is_there(sent));
    there
        .next()
        .map_or(f64::MAX, |(tenth, _)| tenth as f64 / 10.0 - from)
}

/// A link of these rates in kbit/s, each from a time on.
fn changing(phases: &[(f64, u64)], delay_ms: u64, loss: &str) -> BottleneckPlan {
    let mut plan = link(MBIT, delay_ms, 20, loss);
    let first = plan.out.remove(0).1;
    plan.out = (phases.iter())
        .map(|(from, kbit)| {
            let config = ChannelConfig {
                rate: Some(Bitrate::from_bits_per_second(1_000 * kbit)),
                ..first.clone()
            };
            (at(*from), config)
        })
        .collect();
    plan
}

#[test]
fn a_search_that_a_stall_ended_is_made_up_for_within_seconds() {
    // Growth by steps takes 20 to 114 s.
    for loss in ["0%", "5%", "20%"] {
        let plan = changing(&[(0.0, 10_000), (0.02, 20), (3.02, 10_000)], 5, loss);
        for phase in 0..3 {
            let outcomes = share_in_phase(&plan, &[sharing(RateSharing::Own)], 60, phase);
            let took = reached(&outcomes[0], 3.02, 10e6);
            println!("{loss}, {phase}: {took:.1} s");
            assert!(took < 7.0, "{loss}, {phase}: {took}");
        }
    }
}

#[test]
fn a_link_that_was_slow_for_a_while_is_used_in_full_again_within_seconds() {
    // Growth by steps takes 15 to 30 s.
    for loss in ["0%", "5%", "20%"] {
        let plan = changing(&[(0.0, 20_000), (10.0, 100), (20.0, 20_000)], 20, loss);
        for phase in 0..3 {
            let outcomes = share_in_phase(&plan, &[sharing(RateSharing::Own)], 60, phase);
            let took = reached(&outcomes[0], 20.0, 20e6);
            println!("{loss}, {phase}: {took:.1} s");
            assert!(took < 8.0, "{loss}, {phase}: {took}");
        }
    }
}

#[test]
fn who_may_search_again_leaves_cubic_most_of_a_queue_of_a_product_and_longer() {
    for queue in [67, 268] {
        let plan = link(20 * MBIT, 20, queue, "0%");
        for phase in 0..3 {
            let senders = [sharing(RateSharing::Own), SenderPlan::Cubic];
            let outcomes = share_in_phase(&plan, &senders, 60, phase);
            let shares = fair_shares(&outcomes, 10, 60, 20e6);
            println!("own and CUBIC, {queue}: {shares:.3?}");
            assert!(shares[1] > 1.5, "{queue}, {phase}: {shares:?}");
        }
    }
}
