//! The price of a stranger's datagram, counted in operations: the table of `docs/threat-model.md` is what
//! is measured here, row by row.
//!
//! Method: a session of each kind in virtual time gets 30,000 datagrams of one kind a second, for two
//! seconds; what the second of these cost is compared with the table. Once more with as much parity as a
//! header can claim, at an end that has parity off: that must change nothing.

use crate::session_pair::{PATH, PEER, configs, noise, preset, preset_pair, secret};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use fulmar_net::session::{
    EarlyData, Entropy, LinkState, MtuConfig, PeerConfig, PublicKey, Security, Session,
    SessionConfig, Work, source_octets,
};
use fulmar_proto::machine::{Datagram, Deadline, Ecn, Kind, Machine, PathId, Priority, Transmit};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength, Instant};
use fulmar_proto::wire::checksum::hec;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Datagrams a second.
const FLOOD: u32 = 30_000;
/// The largest strength that a header can claim.
const MOST_PARITY: u8 = 255;
const HEADER: usize = 12;
const CHECK: usize = 16;
/// An initiation of kind Noise, without its two checks.
const COVERED: usize = HEADER + 352;

/// Sends one datagram for each that it is told to.
#[derive(Default)]
struct Inner {
    left: u32,
}

impl Machine for Inner {
    type Event = ();
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram<'_>) {}
    fn handle_deadline(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        const OCTETS: usize = 400;
        self.left = self.left.checked_sub(1)?;
        out.resize(out.len() + OCTETS, 7);
        Some(Transmit {
            path: PEER.inner_path(),
            len: OCTETS,
            kind: Kind::Source,
            priority: Priority(0),
            ecn: Ecn::Capable,
        })
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

type Victim = Session<Inner>;

fn session(config: SessionConfig, seed: u8) -> Victim {
    let entropy = Entropy::from_seed([seed; 32]);
    Session::new(config, Inner::default(), entropy).expect("a sound configuration")
}

/// The datagrams that `session` sends now.
fn sent(session: &mut Victim, now: Instant) -> Vec<(PathId, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        while session.poll_event().is_some() {}
        let mut octets = Vec::new();
        let Some(transmit) = session.poll_transmit(now, &mut octets) else {
            return all;
        };
        all.push((transmit.path, octets));
    }
}

fn take(session: &mut Victim, now: Instant, (path, from): Place, octets: &[u8]) {
    let ecn = Ecn::NotCapable;
    let datagram = Datagram { path, octets, ecn };
    session.handle_datagram_from(now, datagram, &source_octets(from));
}

/// A path and the address that it stands for.
type Place = (PathId, SocketAddr);

fn at(address: [u8; 4], port: u16) -> Place {
    // One path for each address and port, none of them the peer's.
    let low = u32::from_be_bytes(address).wrapping_mul(0x9E37_79B1) ^ u32::from(port) << 12;
    (
        PathId(low | 1 << 31),
        (Ipv4Addr::from(address), port).into(),
    )
}

fn the_peer() -> Place {
    (PATH, ([198, 51, 100, 7], 4_914).into())
}

fn a_stranger() -> Place {
    at([203, 0, 113, 9], 1_000)
}

/// A pair with keys: the caller, the called, and what the caller sent to it, in order.
fn joined(configs: [SessionConfig; 2], now: Instant) -> (Victim, Victim, Vec<Vec<u8>>) {
    let [a, b] = configs;
    let (mut caller, mut called) = (session(a, 1), session(b, 2));
    let mut recorded = Vec::new();
    for _ in 0..4 {
        for (_, octets) in sent(&mut caller, now) {
            take(&mut called, now, the_peer(), &octets);
            recorded.push(octets);
        }
        for (_, octets) in sent(&mut called, now) {
            take(&mut caller, now, the_peer(), &octets);
        }
    }
    for session in [&caller, &called] {
        let status = session.status(PEER).expect("a peer");
        assert_eq!(status.link, LinkState::Up);
    }
    (caller, called, recorded)
}

fn with_header(mut octets: Vec<u8>, kind: u8, receiver: [u8; 4]) -> Vec<u8> {
    octets[0] = 0x10 | kind;
    octets[1] = 0;
    octets[4..8].copy_from_slice(&receiver);
    with_hec(octets)
}

fn with_hec(mut octets: Vec<u8>) -> Vec<u8> {
    let check = hec(&octets[..2], &octets[4..HEADER]);
    octets[2..4].copy_from_slice(&check.to_be_bytes());
    octets
}

fn derived(context: &str, key: &PublicKey) -> [u8; 32] {
    blake3::derive_key(context, &[b"noise", &key.octets()[..]].concat())
}

fn short_hash(key: &[u8; 32], octets: &[u8]) -> [u8; CHECK] {
    let mut hash = [0; CHECK];
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(octets).finalize_xof().fill(&mut hash);
    hash
}

/// The first check of whoever knows that public key.
fn with_first_check(mut octets: Vec<u8>, key: &PublicKey) -> Vec<u8> {
    let derived = derived("fulmar 2026-11-21 session first check", key);
    let first = short_hash(&derived, &octets[..COVERED]);
    octets[COVERED..COVERED + CHECK].copy_from_slice(&first);
    octets
}

/// The initiation with the second check that its cookie, which came in `answer`, asks for.
fn with_second_check(mut octets: Vec<u8>, key: &PublicKey, answer: &[u8]) -> Vec<u8> {
    let derived = derived("fulmar 2026-11-21 session cookie", key);
    let body = &answer[HEADER..];
    let (nonce, wrapped, tag) = (&body[..24], &body[24..40], &body[40..56]);
    let mut cookie: [u8; CHECK] = wrapped.try_into().expect("16 octets");
    XChaCha20Poly1305::new(&derived.into())
        .decrypt_in_place_detached(
            XNonce::from_slice(nonce),
            &octets[COVERED..COVERED + CHECK],
            &mut cookie,
            Tag::from_slice(tag),
        )
        .expect("a cookie for this initiation");
    let key = blake3::derive_key("fulmar 2026-11-21 session second check", &cookie);
    let second = short_hash(&key, &octets[..COVERED + CHECK]);
    octets[COVERED + CHECK..].copy_from_slice(&second);
    octets
}

/// Genuine initiations for `key` of somebody who is not known there.
fn strange_calls(key: PublicKey, count: u8) -> Vec<Vec<u8>> {
    let peer = PeerConfig {
        name: "victim".to_owned(),
        security: Security::Noise {
            peer: key,
            preset: None,
        },
        endpoints: vec![PATH],
        mtu: MtuConfig::default(),
    };
    let config = SessionConfig::new(Some(secret(66)), vec![peer], 1);
    let calls = (0..count).map(|seed| {
        let mut caller = session(config.clone(), seed);
        let (_, octets) = sent(&mut caller, Instant::START)
            .pop()
            .expect("an initiation");
        octets
    });
    calls.collect()
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}

/// Makes the nth datagram, and says where it comes from.
type Forge = Box<dyn FnMut(u32, &mut Rng) -> (Place, Vec<u8>)>;

/// One row of the table: the datagram in the table's words, who gets it, and how it is made.
struct Row {
    name: &'static str,
    victim: Victim,
    now: Instant,
    forge: Forge,
    /// Whether a header may claim parity without becoming another kind of datagram.
    takes_parity: bool,
}

impl Row {
    fn new(
        name: &'static str,
        victim: Victim,
        forge: impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>) + 'static,
    ) -> Self {
        Self {
            name,
            victim,
            // Later than anything before; a link that answers nothing is left alone meanwhile.
            now: start() + Duration::from_secs(3),
            forge: Box::new(forge),
            takes_parity: true,
        }
    }

    fn only_as_it_is(mut self) -> Self {
        self.takes_parity = false;
        self
    }
}

fn start() -> Instant {
    Instant::START + Duration::from_secs(1)
}

/// An end that has keys with its peer.
fn called() -> Victim {
    joined(noise(), start()).1
}

fn key() -> PublicKey {
    secret(2).public()
}

/// Rows that need neither a secret, nor sight of the path, nor our public key.
fn blind_rows() -> Vec<Row> {
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
fn calling_rows() -> Vec<Row> {
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
            "the same, with a second check that is made up",
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
fn many_presets() -> SessionConfig {
    let peers = (0..=u8::MAX).map(|n| PeerConfig {
        name: format!("peer {n}"),
        security: Security::Preset { key: preset(n) },
        endpoints: Vec::new(),
        mtu: MtuConfig::default(),
    });
    SessionConfig::new(None, peers.collect(), 1)
}

/// An end under load, and calls to it from ports of one host that have their cookies.
fn proven_calls(calls: &[Vec<u8>]) -> (Victim, Vec<(Place, Vec<u8>)>) {
    let mut victim = called();
    let mut proven = Vec::new();
    let mut now = start();
    // Half of what is read in a second puts it under load, and keeps it there.
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

/// Rows that anyone who sees the path can forge.
fn seeing_rows() -> Vec<Row> {
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
    let (_, victim, recorded) = joined(noise(), start());
    let call = recorded.first().expect("an initiation").clone();
    rows.push(
        Row::new("an initiation, again", victim, move |_, _| {
            (a_stranger(), call.clone())
        })
        .only_as_it_is(),
    );
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
    caller.inner_mut().left = 1;
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
fn parity_rows() -> Vec<Row> {
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

/// The work in the second second of a flood.
fn measured(row: &mut Row, claims_parity: bool) -> Work {
    let mut rng = Rng::from_seed(17).child(row.name);
    let step = Duration::from_secs(1) / FLOOD;
    let mut before = row.victim.work();
    for n in 0..2 * FLOOD {
        if n == FLOOD {
            before = row.victim.work();
        }
        let (place, mut octets) = (row.forge)(n, &mut rng);
        if claims_parity {
            octets[1] = MOST_PARITY;
            octets.extend(random(&mut rng, 4 * usize::from(MOST_PARITY)));
            if row.name != "noise" {
                octets = with_hec(octets);
            }
        }
        take(&mut row.victim, row.now, place, &octets);
        drop(sent(&mut row.victim, row.now));
        row.now += step;
    }
    let after = row.victim.work();
    Work {
        key_operations: after.key_operations - before.key_operations,
        hashes: after.hashes - before.hashes,
        openings: after.openings - before.openings,
        decodes: after.decodes - before.decodes,
        answers: after.answers - before.answers,
    }
}

/// So many for ten datagrams, and so many a second besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Price {
    for_ten: u64,
    a_second: u64,
}

impl Price {
    fn parse(cell: &str) -> Self {
        let mut price = Self::default();
        for term in cell.split(" + ") {
            if let Some(rate) = term.strip_suffix("/s") {
                price.a_second = rate.replace(',', "").parse().expect("a rate");
            } else {
                let (whole, tenths) = term.split_once('.').unwrap_or((term, "0"));
                let [whole, tenths] = [whole, tenths].map(|n| n.parse::<u64>().expect("digits"));
                assert!(tenths < 10, "{cell}: one digit behind the point");
                price.for_ten = 10 * whole + tenths;
            }
        }
        price
    }

    /// Whether it says what was counted: no more, and not much less.
    fn holds(self, counted: u64) -> bool {
        let besides = counted.checked_sub(self.for_ten * u64::from(FLOOD) / 10);
        besides.is_some_and(|besides| besides <= self.a_second && besides * 2 >= self.a_second)
    }
}

/// The rows of the table: in the order of [`Work::named`].
fn table() -> BTreeMap<String, [Price; 5]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threat-model.md");
    let page = std::fs::read_to_string(page).expect("the threat model");
    let (_, section) = page
        .split_once("## The price of a datagram")
        .expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let rows = lines.filter(|line| !line.starts_with("| datagram"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, keys, hashes, openings, decodes, answers] = cells[..] else {
            panic!("six cells: {line}");
        };
        let prices = [keys, hashes, openings, decodes, answers].map(Price::parse);
        (name.to_owned(), prices)
    })
    .collect()
}

#[test]
fn a_datagram_costs_what_the_threat_model_says() {
    let table = table();
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    let rows = [blind_rows(), calling_rows(), seeing_rows(), parity_rows()];
    for mut row in rows.into_iter().flatten() {
        names.insert(row.name.to_owned());
        let Some(prices) = table.get(row.name) else {
            wrong.push(format!("{}: not in the table", row.name));
            continue;
        };
        let passes: &[bool] = if row.takes_parity {
            &[false, true]
        } else {
            &[false]
        };
        for claims_parity in passes {
            let counted = measured(&mut row, *claims_parity);
            for ((what, count), price) in counted.named().into_iter().zip(prices) {
                if !price.holds(count) {
                    let name = row.name;
                    wrong.push(format!(
                        "{name}, parity claimed {claims_parity}: {count} of {what} for {FLOOD}, {price:?}"
                    ));
                }
            }
        }
    }
    let listed: BTreeSet<String> = table.into_keys().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(listed, names, "a row of the table that nothing measures");
}

/// The time that a peer takes to come up while `flood` arrives; with `is_known`, its address is configured.
fn joins_after(
    mut flood: impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>),
    is_known: bool,
) -> Duration {
    let place = the_peer();
    let [mut a, mut b] = noise();
    a.peers[0].endpoints.clear();
    if is_known {
        b.peers[0].endpoints = vec![place.0];
    }
    // The configured one would call itself: its calls are lost.
    let (mut caller, mut called) = (session(a, 1), session(b, 2));
    let mut rng = Rng::from_seed(23);
    let begins = start() + Duration::from_secs(2);
    let mut now = start();
    let mut has_begun = false;
    let step = Duration::from_secs(1) / FLOOD;
    let delay = Duration::from_millis(10);
    let mut flying: Vec<(Instant, bool, Vec<u8>)> = Vec::new();
    for n in 0..20 * FLOOD {
        now += step;
        let (from, octets) = flood(n, &mut rng);
        take(&mut called, now, from, &octets);
        if !has_begun && now >= begins {
            has_begun = true;
            caller.set_endpoints(PEER, vec![place.0]);
        }
        for (path, octets) in sent(&mut called, now) {
            let is_call = octets[0] == 0x11;
            if path == place.0 && has_begun && !is_call {
                flying.push((now + delay, true, octets));
            }
        }
        if has_begun {
            for (_, octets) in sent(&mut caller, now) {
                flying.push((now + delay, false, octets));
            }
        }
        let (due, later) = flying.into_iter().partition(|(at, ..)| *at <= now);
        flying = later;
        for (_, to_caller, octets) in due {
            let end = if to_caller { &mut caller } else { &mut called };
            take(end, now, place, &octets);
        }
        if has_begun && called.status(PEER).is_some_and(|s| s.link == LinkState::Up) {
            return now.saturating_since(begins);
        }
    }
    Duration::from_secs(20)
}

#[test]
fn twelve_thousand_ports_delay_a_new_peer_by_less_than_a_second() {
    let calls = strange_calls(key(), 50);
    let took = joins_after(
        move |n, _| {
            let port = 1 + u16::try_from(n % 12_000).expect("small");
            let call = calls[n as usize % calls.len()].clone();
            (at([203, 0, 113, 9], port), call)
        },
        false,
    );
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Calls from anywhere.
fn forged_addresses() -> impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>) {
    let calls = strange_calls(key(), 50);
    move |n, rng| {
        let mut address = [0; 4];
        rng.fill(&mut address);
        (at(address, 4_914), calls[n as usize % calls.len()].clone())
    }
}

#[test]
fn forged_addresses_do_not_delay_a_peer_that_is_where_the_configuration_says() {
    let took = joins_after(forged_addresses(), true);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn forged_addresses_delay_a_peer_that_nobody_has_heard_of_by_seconds_only() {
    // One call in ten is heard, and it calls four times a second.
    let took = joins_after(forged_addresses(), false);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn forged_cookies_do_not_make_a_caller_repeat_itself_without_end() {
    let to = |key: u8| Security::Noise {
        peer: secret(key).public(),
        preset: None,
    };
    let [config, _] = configs([to(2), to(1)], [Some(secret(1)), Some(secret(2))]);
    let mut victim = session(config, 1);
    let call = sent(&mut victim, start()).remove(0).1;
    let before = victim.counters().initiations_sent;
    let wrapping = derived("fulmar 2026-11-21 session cookie", &key());
    let mut rng = Rng::from_seed(5);
    for n in 0..10_000_u64 {
        let now = start() + Duration::from_micros(100 * n);
        let (nonce, mut cookie) = (random(&mut rng, 24), random(&mut rng, 16));
        let tag = XChaCha20Poly1305::new(&wrapping.into())
            .encrypt_in_place_detached(
                XNonce::from_slice(&nonce),
                &call[COVERED..COVERED + CHECK],
                &mut cookie,
            )
            .expect("short");
        let octets = [&[0; HEADER][..], &nonce, &cookie, &tag].concat();
        let index = call[8..12].try_into().expect("4 octets");
        let octets = with_header(octets, 3, index);
        take(&mut victim, now, the_peer(), &octets);
        drop(sent(&mut victim, now));
    }
    let repeated = victim.counters().initiations_sent - before;
    assert!((1..=15).contains(&repeated), "{repeated} in a second");
}

#[test]
fn a_first_check_of_whoever_knows_the_key_is_right() {
    // The tests above make their own: this is one that a session made.
    let call = strange_calls(key(), 1).remove(0);
    assert_eq!(with_first_check(call.clone(), &key()), call);
}
