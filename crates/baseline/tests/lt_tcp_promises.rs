//! The promises of LT-TCP beside delivery: loss never shrinks the window, marks do, and without
//! loss there is no parity.

use crate::stream_lab::{Faults, Lab, content};
use fulmar_baseline::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration};

fn lab(seed: u64, faults: Faults, len: usize) -> Lab<LtTcpEndpoint> {
    let mut rng = Rng::from_seed(seed).child("content");
    let configs = [LtTcpConfig {
        data_retries: 100,
        syn_retries: 60,
        // The buffer is so large that the window, and not the buffer, is what a test sees.
        receive_buffer: ByteCount(16 << 20),
        ..LtTcpConfig::default()
    }; 2];
    Lab::<LtTcpEndpoint>::new(seed, faults, content(&mut rng, len), &configs)
}

fn count(lab: &Lab<LtTcpEndpoint>, kind: TransmitKind) -> u64 {
    let kinds = &lab.sides[0].app.sent_kinds;
    kinds.get(&kind).copied().unwrap_or(0)
}

#[test]
fn without_loss_there_is_no_parity_and_nothing_is_sent_twice() {
    let mut lab = lab(1, Faults::default(), 1_000_000);
    assert_eq!(lab.run(), Ok(()));
    assert_eq!(count(&lab, TransmitKind::Repair), 0);
    assert_eq!(count(&lab, TransmitKind::Retransmission), 0);
    assert_eq!(lab.counters(0).timeouts, 0);
}

#[test]
fn loss_without_marks_never_shrinks_the_window() {
    for (seed, loss) in [(1, 0.05), (2, 0.2), (3, 0.4)] {
        let mut lab = lab(seed, Faults::default(), 8_000_000);
        lab.run_for(Duration::from_millis(100));
        lab.faults.loss = loss;
        let mut window = 0;
        for _ in 0..200 {
            lab.run_for(Duration::from_millis(20));
            let Some(status) = lab.status(0) else { break };
            assert!(
                status.window >= window,
                "seed {seed}: {status:?} after {window}"
            );
            window = status.window;
        }
        assert_eq!(lab.counters(0).marks, 0);
        assert_eq!(lab.run(), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_mark_takes_a_fifth_of_the_window_once_in_a_round_trip() {
    let mut lab = lab(1, Faults::default(), 8_000_000);
    lab.run_for(Duration::from_millis(250));
    lab.faults.mark = 1.0;
    let mut before = 0;
    while lab.counters(0).marks == 0 {
        before = lab.status(0).unwrap().window;
        lab.run_for(Duration::from_micros(1));
    }
    // RFC 8511: 4/5 stay of the window at the time of the mark, whatever it grew by afterwards.
    let status = lab.status(0).unwrap();
    let kept = |window: u64| window * 4 / 5;
    let grown = before + 2 * 1_500;
    assert!(
        (kept(before)..=kept(grown)).contains(&status.window),
        "{status:?} after {before}"
    );
    assert_eq!(status.threshold, status.window, "{status:?}");
    // Segments that were on their way then are marked too, and not answered any more: the last of
    // them left up to half a round trip earlier, waiting for the window.
    lab.run_for(Duration::from_millis(20));
    assert_eq!(lab.counters(0).marks, 1);
    lab.run_for(Duration::from_millis(450));
    let marks = lab.counters(0).marks;
    assert!((5..=13).contains(&marks), "one in each 40 ms: {marks}");
    lab.faults.mark = 0.0;
    assert_eq!(lab.run(), Ok(()));
}

#[test]
fn without_ecn_on_either_side_marks_mean_nothing_and_all_arrives() {
    let mut rng = Rng::from_seed(4);
    let config = LtTcpConfig::default();
    let deaf = LtTcpConfig {
        ecn: false,
        ..config
    };
    for configs in [[config, deaf], [deaf, config]] {
        let faults = Faults {
            mark: 1.0,
            ..Faults::default()
        };
        let mut lab = Lab::<LtTcpEndpoint>::new(4, faults, content(&mut rng, 100_000), &configs);
        assert_eq!(lab.run(), Ok(()));
        assert_eq!(lab.counters(0).marks, 0);
    }
}

#[test]
fn a_silence_is_survived_and_the_window_comes_back_with_the_path() {
    let mut lab = lab(1, Faults::default(), 8_000_000);
    lab.run_for(Duration::from_millis(250));
    let before = lab.status(0).unwrap().window;
    lab.faults.loss = 1.0;
    lab.run_for(Duration::from_secs(30));
    assert!(lab.counters(0).timeouts >= 3);
    // Each timeout lets a few units out, not a window.
    assert!(count(&lab, TransmitKind::Repair) + count(&lab, TransmitKind::Retransmission) < 100);
    lab.faults.loss = 0.0;
    // The longest timeout, and half of it for answers to the segments sent then.
    let mut after = 0;
    for _ in 0..1_500 {
        lab.run_for(Duration::from_millis(10));
        after = lab
            .status(0)
            .map_or(after, |status| status.window.max(after));
    }
    assert!(after >= before, "{after} after {before}");
    assert_eq!(lab.run(), Ok(()));
}
