//! The rows of the table: kinds of datagrams, the ends that get them, and the ways to make them.

use super::forging::{
    CHECK, COVERED, HEADER, a_stranger, at, random, strange_calls, with_header, with_hec,
    with_second_check,
};
use crate::session_pair::by_hand::{ByHand, Place, joined, sent, session, take, the_peer};
use crate::session_pair::{noise, preset, preset_pair, secret};
use fulmar_net::session::{EarlyData, MtuConfig, PeerConfig, PublicKey, Security, SessionConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength, Instant};

/// Datagrams a second, unless a row says otherwise.
const FLOOD: u32 = 30_000;
/// A rate of initiations a second at which each is read.
const BELOW_LOAD: u32 = 90;
/// The largest strength that a header can claim.
pub(crate) const MOST_PARITY: u8 = 255;

/// A maker of the nth datagram and of the place where it comes from.
pub(crate) type Forge = Box<dyn FnMut(u32, &mut Rng) -> (Place, Vec<u8>)>;

/// One row of the table: the datagram in the table's words, the end that gets it, and its maker.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) victim: ByHand,
    pub(crate) now: Instant,
    pub(crate) forge: Forge,
    /// Datagrams a second.
    pub(crate) rate: u32,
    /// Whether a header may claim parity without becoming another kind of datagram.
    pub(crate) takes_parity: bool,
}

impl Row {
    pub(crate) fn new(
        name: &'static str,
        victim: ByHand,
        forge: impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>) + 'static,
    ) -> Self {
        Self {
            name,
            victim,
            // Later than anything before; a link that answers nothing is left alone meanwhile.
            now: start() + Duration::from_secs(3),
            forge: Box::new(forge),
            rate: FLOOD,
            takes_parity: true,
        }
    }

    /// The row at a rate that puts no end under load.
    fn below_load(mut self) -> Self {
        self.rate = BELOW_LOAD;
        self.only_as_it_is()
    }

    pub(crate) fn only_as_it_is(mut self) -> Self {
        self.takes_parity = false;
        self
    }
}

pub(crate) fn start() -> Instant {
    Instant::START + Duration::from_secs(1)
}

/// An end that has keys with its peer.
pub(crate) fn called() -> ByHand {
    joined(noise(), start()).1
}

pub(crate) fn key() -> PublicKey {
    secret(2).public()
}

/// Rows that need neither a secret, nor sight of the path, nor our public key.
pub(crate) fn blind_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.push(Row::new("noise", called(), |_, rng| {
        (a_stranger(), random(rng, 400))
    }));
    rows.push(
        Row::new("shorter than a header", called(), |n, rng| {
            (a_stranger(), random(rng, n as usize % HEADER))
        })
        .only_as_it_is(),
    );
    rows.push(Row::new("a type without a meaning", called(), |_, rng| {
        let octets = random(rng, 400);
        (a_stranger(), with_header(octets, 9, [1, 2, 3, 4]))
    }));
    rows.push(
        Row::new("an initiation of another version", called(), |_, rng| {
            let mut octets = random(rng, 396);
            octets[0] = 0x21;
            (a_stranger(), with_hec(octets))
        })
        .only_as_it_is(),
    );
    rows.push(Row::new(
        "data for no session of ours",
        called(),
        |_, rng| {
            let octets = random(rng, 400);
            (a_stranger(), with_header(octets, 0, [1, 2, 3, 4]))
        },
    ));
    rows.push(Row::new(
        "a response, cookie, version or notice to nothing",
        called(),
        |n, rng| {
            let kind = [2, 3, 5, 6][n as usize % 4];
            (
                a_stranger(),
                with_header(random(rng, 68), kind, [1, 2, 3, 4]),
            )
        },
    ));
    rows.push(Row::new("early data", called(), |_, rng| {
        let octets = random(rng, 400);
        (a_stranger(), with_header(octets, 4, [1, 2, 3, 4]))
    }));
    rows.push(Row::new(
        "an initiation for another key",
        called(),
        |_, rng| {
            let octets = random(rng, 396);
            (a_stranger(), with_header(octets, 1, [0; 4]))
        },
    ));
    let mut victim = called();
    victim.set_identity(start(), Some(secret(2)), Some(secret(3)));
    rows.push(Row::new(
        "the same, where a former key of ours is taken, too",
        victim,
        |_, rng| {
            let octets = random(rng, 396);
            (a_stranger(), with_header(octets, 1, [0; 4]))
        },
    ));
    rows.push(Row::new(
        "the same, where 256 preset keys are taken",
        session(many_presets(), 2),
        |_, rng| {
            let octets = random(rng, 348);
            (a_stranger(), with_header(octets, 1, [0; 4]))
        },
    ));
    rows
}

/// Rows that anyone who knows our public key can send.
pub(crate) fn calling_rows() -> Vec<Row> {
    let calls = strange_calls(key(), 50);
    let pick = |calls: &[Vec<u8>], n: u32| calls[n as usize % calls.len()].clone();
    let mut rows = Vec::new();
    let of = calls.clone();
    rows.push(
        Row::new(
            "an initiation for our key, from any port of one host",
            called(),
            move |n, _| {
                let port = 1 + u16::try_from(n % 12_000).expect("small");
                (at([203, 0, 113, 9], port), pick(&of, n))
            },
        )
        .only_as_it_is(),
    );
    let of = calls.clone();
    rows.push(
        Row::new(
            "an initiation for our key, 90 a second",
            called(),
            move |n, _| (a_stranger(), pick(&of, n)),
        )
        .below_load(),
    );
    let of = calls.clone();
    rows.push(
        Row::new(
            "an initiation for our key, with a second check that is made up",
            called(),
            move |n, rng| {
                let mut octets = pick(&of, n);
                rng.fill(&mut octets[COVERED + CHECK..]);
                (a_stranger(), octets)
            },
        )
        .only_as_it_is(),
    );
    let of = calls.clone();
    rows.push(
        Row::new(
            "an initiation for our key, from forged addresses",
            called(),
            move |n, rng| {
                let mut address = [0; 4];
                rng.fill(&mut address);
                (at(address, 4_914), pick(&of, n))
            },
        )
        .only_as_it_is(),
    );
    let (victim, proven) = proven_calls(&calls);
    rows.push(
        Row::new(
            "an initiation for our key, from ports of one host that are proven",
            victim,
            move |n, _| proven[n as usize % proven.len()].clone(),
        )
        .only_as_it_is(),
    );
    rows
}

/// As many peers as there can be, each with a preset key of its own.
pub(crate) fn many_presets() -> SessionConfig {
    let peers = (0..=u8::MAX).map(|n| PeerConfig {
        name: format!("peer {n}"),
        security: Security::Preset { key: preset(n) },
        endpoints: Vec::new(),
        mtu: MtuConfig::default(),
    });
    SessionConfig::new(None, peers.collect(), 1)
}

/// An end under load, and calls to it from ports of one host that have their cookies.
pub(crate) fn proven_calls(calls: &[Vec<u8>]) -> (ByHand, Vec<(Place, Vec<u8>)>) {
    let mut victim = called();
    let mut proven = Vec::new();
    let mut now = start();
    // Half of the initiations that are read in a second put the end under load, and keep it there.
    for (port, call) in (1..3_000).zip(calls.iter().cycle()) {
        now += Duration::from_millis(1);
        let place = at([203, 0, 113, 9], port);
        take(&mut victim, now, place, call);
        for (path, answer) in sent(&mut victim, now) {
            if path == place.0 && answer[0] == 0x13 {
                let call = with_second_check(call.clone(), &key(), &answer);
                proven.push((place, call));
            }
        }
    }
    assert!(proven.len() > 100, "{} ports proven", proven.len());
    (victim, proven)
}

/// Rows of initiations of the peer that somebody recorded.
fn recorded_calls() -> Vec<Row> {
    let mut rows = Vec::new();
    let (_, victim, recorded) = joined(noise(), start());
    let call = recorded.first().expect("an initiation").clone();
    rows.push(
        Row::new("an initiation, again", victim, move |_, _| {
            (a_stranger(), call.clone())
        })
        .only_as_it_is(),
    );
    let (_, victim, recorded) = joined(noise(), start());
    let call = recorded.first().expect("an initiation").clone();
    rows.push(
        Row::new("the same, 90 a second", victim, move |_, _| {
            (a_stranger(), call.clone())
        })
        .below_load(),
    );
    let [calling, _] = noise();
    // Initiations of starts of the peer that came to nothing.
    let unanswered = [3, 4].map(|seed| {
        sent(&mut session(calling.clone(), seed), start())
            .remove(0)
            .1
    });
    rows.push(
        Row::new(
            "two recorded initiations in turn, 90 a second",
            called(),
            move |n, _| (a_stranger(), unanswered[n as usize % 2].clone()),
        )
        .below_load(),
    );
    rows
}

/// Rows that anyone who sees the path can forge.
pub(crate) fn seeing_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let (_, victim, recorded) = joined(noise(), start());
    let data = recorded.last().expect("data").clone();
    let index = data[4..8].try_into().expect("4 octets");
    rows.push(Row::new(
        "data for a session of ours, made up",
        victim,
        move |_, rng| (a_stranger(), with_header(random(rng, 400), 0, index)),
    ));
    let (_, victim, recorded) = joined(noise(), start());
    let data = recorded.last().expect("data").clone();
    rows.push(
        Row::new("data, again", victim, move |_, _| {
            (a_stranger(), data.clone())
        })
        .only_as_it_is(),
    );
    rows.extend(recorded_calls());
    let pending = || {
        let [config, _] = noise();
        let mut victim = session(config, 1);
        let calls = sent(&mut victim, start());
        let index: [u8; 4] = calls[0].1[8..12].try_into().expect("4 octets");
        (victim, index)
    };
    let (victim, index) = pending();
    rows.push(Row::new(
        "a response to an initiation of ours, made up",
        victim,
        move |n, rng| {
            let place = if n % 2 == 0 { the_peer() } else { a_stranger() };
            (place, with_header(random(rng, 316), 2, index))
        },
    ));
    let (victim, index) = pending();
    rows.push(Row::new(
        "a cookie for an initiation of ours, made up",
        victim,
        move |_, rng| (a_stranger(), with_header(random(rng, 68), 3, index)),
    ));
    let [mut sends, mut takes] = preset_pair();
    sends.early_data = EarlyData::Send;
    takes.early_data = EarlyData::Take;
    let mut caller = session(sends, 1);
    let inner = caller.inner_mut();
    (inner.left, inner.octets) = (1, 400);
    let early = sent(&mut caller, start());
    let early = early.iter().find(|(_, octets)| octets[0] == 0x14);
    let early = early.expect("early data").1.clone();
    let victim = session(takes.clone(), 2);
    let of = early.clone();
    rows.push(
        Row::new(
            "early data where it is taken, made up",
            victim,
            move |_, rng| {
                let mut octets = of.clone();
                rng.fill(&mut octets[HEADER + 8..]);
                (a_stranger(), octets)
            },
        )
        .only_as_it_is(),
    );
    let victim = session(takes, 2);
    rows.push(
        Row::new(
            "early data where it is taken, again",
            victim,
            move |_, _| (a_stranger(), early.clone()),
        )
        .only_as_it_is(),
    );
    rows
}

/// Rows that parity adds where it is on.
pub(crate) fn parity_rows() -> Vec<Row> {
    let words = FecStrength::from_words(24).expect("a strength");
    let with_parity = || {
        noise().map(|config| SessionConfig {
            fec_words: words,
            ..config
        })
    };
    let mut rows = Vec::new();
    let (_, victim, _) = joined(with_parity(), start());
    rows.push(
        Row::new("parity on: noise", victim, |_, rng| {
            (a_stranger(), random(rng, 400))
        })
        .only_as_it_is(),
    );
    let (_, victim, _) = joined(with_parity(), start());
    rows.push(
        Row::new(
            "parity on: noise from where the peer is",
            victim,
            |_, rng| (the_peer(), random(rng, 400)),
        )
        .only_as_it_is(),
    );
    let (_, victim, recorded) = joined(with_parity(), start());
    let data = recorded.last().expect("data").clone();
    let index = data[4..8].try_into().expect("4 octets");
    rows.push(
        Row::new(
            "parity on: data for a session of ours, made up",
            victim,
            move |_, rng| {
                let mut octets = with_header(random(rng, 400), 0, index);
                octets[1] = 24;
                (the_peer(), with_hec(octets))
            },
        )
        .only_as_it_is(),
    );
    let (_, victim, recorded) = joined(with_parity(), start());
    let data = recorded.last().expect("data").clone();
    let index = data[4..8].try_into().expect("4 octets");
    rows.push(
        Row::new(
            "parity on: the same with another number of words",
            victim,
            move |_, rng| {
                let mut octets = with_header(random(rng, 1_420), 0, index);
                octets[1] = MOST_PARITY;
                (the_peer(), with_hec(octets))
            },
        )
        .only_as_it_is(),
    );
    rows
}
