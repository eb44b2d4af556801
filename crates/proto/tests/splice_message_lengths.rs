//! The length of TPDUs that carry messages in order where what is damaged is dropped.
//!
//! Method: messages of 1,200 octets between two splicers, over a pipe that loses datagrams as often as one of their bits is wrong, or
//! whatever their length. Nobody is told how it loses.

use super::splicers::{Pair, SINK, Script, endpoint_config, pattern};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{FlowClass, FlowKind, SplicerConfig};
use fulmar_proto::transport::aerotp::EndpointConfig;
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::Mode;
use std::cell::Cell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(10);
const MESSAGES: usize = 4_000;

/// The datagrams and octets that left the first side.
#[derive(Clone, Copy, Default)]
struct Left {
    datagrams: u64,
    octets: u64,
}

impl Left {
    fn octets_each(self) -> f64 {
        self.octets as f64 / self.datagrams as f64
    }
}

/// A pipe that delivers this share of datagrams of so many octets, from side 0; the way back loses nothing.
fn pipe(arrives: impl Fn(usize) -> f64 + 'static, left: Rc<Cell<Left>>, seed: u64) -> Script {
    let mut rng = Rng::from_seed(seed).child("loss");
    Box::new(move |from, _, octets| {
        if from == 0 {
            let mut sum = left.get();
            sum.datagrams += 1;
            sum.octets += octets.len() as u64;
            left.set(sum);
            if !rng.chance(arrives(octets.len())) {
                return Vec::new();
            }
        }
        vec![(DELAY, octets.to_vec())]
    })
}

/// Sends messages until all have come; returns what left meanwhile.
fn deliver(arrives: impl Fn(usize) -> f64 + 'static, follows_length: bool) -> Left {
    let left = Rc::new(Cell::new(Left::default()));
    let endpoint = EndpointConfig {
        follows_length,
        ..endpoint_config()
    };
    let script = pipe(arrives, Rc::clone(&left), 11);
    let mut pair = Pair::with_endpoints(&SplicerConfig::default(), script, endpoint);
    let class = FlowClass {
        mode: Mode::HybridNackMack,
        window: ByteCount(1_000_000),
        ..FlowClass::default()
    };
    let id = pair.open_only(FlowKind::Datagrams, SINK, class);
    let message = pattern(1_200);
    for _ in 0..MESSAGES {
        pair.call(0, |splicer, now| splicer.accept_datagram(now, id, &message));
        pair.run(Duration::from_millis(2));
    }
    pair.run(Duration::from_secs(20));
    let came = &pair.app(1, id).messages;
    assert_eq!(came.len(), MESSAGES);
    assert!(
        came.iter().all(|octets| *octets == message),
        "as they were sent"
    );
    left.get()
}

#[test]
fn messages_are_cut_where_bit_errors_take_long_packets() {
    // Octets below a TPDU are damaged as well: a bit error rate of 1e-4.
    let arrives = |len: usize| (1.0_f64 - 1e-4).powf(8.0 * (len + 20) as f64);
    let [cut, whole] = [true, false].map(|follows| deliver(arrives, follows));
    println!("{} octets cut, {} whole", cut.octets, whole.octets);
    assert!(whole.octets as f64 > 1.3 * cut.octets as f64);
}

#[test]
fn messages_stay_whole_where_packets_are_lost_whatever_their_length() {
    for share in [0.9, 0.7] {
        let [follows, whole] = [true, false].map(|follows| deliver(move |_| share, follows));
        println!(
            "{share}: {:.0} and {:.0} octets a datagram",
            follows.octets_each(),
            whole.octets_each()
        );
        // One in eight may be shorter, to find out.
        assert!(follows.octets_each() > 0.8 * whole.octets_each());
        assert!(follows.octets as f64 <= 1.03 * whole.octets as f64);
    }
}
