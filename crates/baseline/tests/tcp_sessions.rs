//! Random sessions of two TCPs over a path that loses, damages, duplicates and reorders: all octets
//! written are delivered, once, in order, and both ends close.

use crate::stream_lab::{Faults, Lab, below, content};
use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::tcp::{Algorithm, TcpConfig, TcpEndpoint, TcpEndpointConfig, TcpPreset};
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;

fn faults(rng: &mut Rng) -> Faults {
    let scale = rng.unit_f64();
    Faults {
        loss: 0.4 * scale * rng.unit_f64(),
        damage: 0.1 * scale * rng.unit_f64(),
        double: 0.2 * rng.unit_f64(),
        reorder: 0.3 * rng.unit_f64(),
        mark: 0.01,
        ..Faults::default()
    }
}

fn config(rng: &mut Rng) -> TcpConfig {
    let (_, preset) = TcpPreset::ALL[below(rng, 5)];
    let mut config = preset.config();
    let mut flip = |field: &mut bool| *field ^= rng.chance(0.3);
    flip(&mut config.recovery.sack);
    flip(&mut config.recovery.frto);
    flip(&mut config.recovery.limited_transmit);
    flip(&mut config.recovery.rescue);
    flip(&mut config.recovery.rate_reduction);
    flip(&mut config.growth.at_recovery_end);
    flip(&mut config.growth.at_repair_end);
    flip(&mut config.timestamps);
    flip(&mut config.window_scaling);
    flip(&mut config.ecn);
    flip(&mut config.nagle);
    flip(&mut config.growth.validation);
    let algorithms = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::None];
    config.growth.algorithm = algorithms[below(rng, 3)];
    config.mss = u16::try_from(100 + rng.below(1400)).expect("small");
    config.receive_buffer = ByteCount(2_000 + rng.below(100_000));
    config.send_buffer = ByteCount(2_000 + rng.below(100_000));
    config.data_retries = 60;
    config.syn_retries = 60;
    config.rto.max = Duration::from_secs(60);
    if rng.chance(0.3) {
        config.unsent_max = Some(ByteCount(u64::from(config.mss) + rng.below(10_000)));
    }
    config
}

#[test]
fn no_more_waits_unsent_than_is_asked_for() {
    let endpoint = TcpEndpointConfig {
        local: NodeAddress(1),
        connections_max: 1,
    };
    let mut machine = TcpEndpoint::new(endpoint, Rng::from_seed(1));
    let config = TcpConfig {
        unsent_max: Some(ByteCount(5000)),
        ..TcpPreset::LinuxLike.config()
    };
    let id = machine.connect(PathId(2), Port(5), Port(80), config);
    let id = id.expect("sane settings");
    assert_eq!(machine.room(id), 5000);
    assert_eq!(machine.write(id, &[7; 6000]), Ok(5000));
    assert_eq!((machine.room(id), machine.write(id, &[7])), (0, Ok(0)));
}

fn session(seed: u64) -> Result<(), String> {
    let mut rng = Rng::from_seed(seed).child("session");
    let faults = faults(&mut rng);
    let configs = [config(&mut rng), config(&mut rng)];
    let len = below(&mut rng, 60_000);
    let mut lab = Lab::<TcpEndpoint>::new(seed, faults, content(&mut rng, len), &configs);
    if rng.chance(0.5) {
        let len = below(&mut rng, 60_000);
        lab.sides[1].app.to_write = content(&mut rng, len);
    }
    lab.run()
}

#[test]
fn what_is_written_comes_out_once_and_in_order_whatever_the_path_does() {
    let failures: Vec<(u64, String)> = (0..1000)
        .filter_map(|seed| Some((seed, session(seed).err()?)))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
