//! Random sessions of two LT-TCPs: all octets written are delivered, once, in order, and both ends
//! close, whatever the path does.

use crate::stream_lab::{Faults, Lab, below, content};
use fulmar_baseline::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Probability};

fn faults(rng: &mut Rng) -> Faults {
    let scale = rng.unit_f64();
    let bursts = rng.chance(0.3);
    Faults {
        loss: 0.6 * scale * rng.unit_f64(),
        burst: if bursts {
            1.0 + 9.0 * rng.unit_f64()
        } else {
            0.0
        },
        damage: 0.1 * scale * rng.unit_f64(),
        double: 0.2 * rng.unit_f64(),
        reorder: 0.3 * rng.unit_f64(),
        mark: 0.05 * rng.unit_f64(),
    }
}

fn config(rng: &mut Rng) -> LtTcpConfig {
    let mut config = LtTcpConfig::default();
    config.mss = u16::try_from(300 + rng.below(1_200)).expect("small");
    config.unit_min = 64 + u16::try_from(rng.below(200)).expect("small");
    config.granularity = u8::try_from(1 + rng.below(20)).expect("small");
    config.units_max = config.granularity + u8::try_from(rng.below(140)).expect("small");
    let chance = |rng: &mut Rng| Probability::new(0.99 * rng.unit_f64()).expect("a share");
    config.fec.proactive = chance(rng);
    config.fec.reactive = chance(rng);
    config.fec.deviations = 2.0 * rng.unit_f64();
    config.ack_every = u8::try_from(1 + rng.below(4)).expect("small");
    config.ecn ^= rng.chance(0.3);
    config.receive_buffer = ByteCount(2_000 + rng.below(100_000));
    config.send_buffer = ByteCount(2_000 + rng.below(100_000));
    config.data_retries = 250;
    config.syn_retries = 60;
    config
}

#[test]
fn what_is_written_comes_out_once_and_in_order_whatever_the_path_does() {
    let failures: Vec<(u64, String)> = (0..1_000)
        .filter_map(|seed| {
            let mut rng = Rng::from_seed(seed).child("session");
            let faults = faults(&mut rng);
            let configs = [config(&mut rng), config(&mut rng)];
            let len = below(&mut rng, 60_000);
            let mut lab = Lab::<LtTcpEndpoint>::new(seed, faults, content(&mut rng, len), &configs);
            if rng.chance(0.5) {
                let len = below(&mut rng, 60_000);
                lab.sides[1].app.to_write = content(&mut rng, len);
            }
            Some((seed, lab.run().err()?))
        })
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_loss_up_to_sixty_percent_single_or_in_bursts_is_repaired() {
    for loss in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6] {
        for burst in [1.0, 5.0] {
            for seed in 0..5 {
                let faults = Faults {
                    loss,
                    burst,
                    ..Faults::default()
                };
                let mut rng = Rng::from_seed(seed).child("content");
                let configs = [LtTcpConfig {
                    data_retries: 250,
                    syn_retries: 60,
                    ..LtTcpConfig::default()
                }; 2];
                let mut lab =
                    Lab::<LtTcpEndpoint>::new(seed, faults, content(&mut rng, 300_000), &configs);
                let outcome = lab.run();
                assert_eq!(outcome, Ok(()), "{loss} {burst} seed {seed}");
            }
        }
    }
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender_and_lets_it_go_on() {
    let configs = [LtTcpConfig {
        receive_buffer: ByteCount(20_000),
        ..LtTcpConfig::default()
    }; 2];
    let mut rng = Rng::from_seed(3);
    let faults = Faults {
        loss: 0.2,
        ..Faults::default()
    };
    let mut lab = Lab::<LtTcpEndpoint>::new(3, faults, content(&mut rng, 100_000), &configs);
    lab.sides[1].app.deaf = true;
    lab.run_for(Duration::from_secs(60));
    assert!(lab.sides[1].app.received.is_empty());
    assert!(lab.sides[0].app.closed.is_none(), "patience, not silence");
    lab.listen_up(1);
    assert_eq!(lab.run(), Ok(()));
}
