//! The rows of the table about data in wire 2, whose header has no check.

use super::forging::{a_stranger, random, with_header, with_hec};
use super::rows::{Row, called, start};
use crate::session_pair::by_hand::{ByHand, joined, the_peer};
use crate::session_pair::noise;
use fulmar_net::session::{SessionConfig, wire_2};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::FecStrength;

/// The header of the peer's data in wire 2, without its counter.
type Header = [u8; 5];

/// An end that agreed on wire 2 with its peer, and the last datagram of that peer.
fn called_in_two() -> (ByHand, Vec<u8>, Header) {
    called_with(FecStrength::NONE)
}

/// The same with parity, so that the header is armoured.
fn called_with(fec_words: FecStrength) -> (ByHand, Vec<u8>, Header) {
    let configs = noise().map(|config| SessionConfig {
        capabilities: vec![wire_2()],
        fec_words,
        ..config
    });
    let (_, victim, recorded) = joined(configs, start());
    let data = recorded.last().expect("data").clone();
    let header = *data.first_chunk().expect("a header");
    (victim, data, header)
}

fn with_header_of_two(mut octets: Vec<u8>, header: Header) -> Vec<u8> {
    octets[..header.len()].copy_from_slice(&header);
    octets
}

fn row(
    name: &'static str,
    victim: ByHand,
    mut forge: impl FnMut(&mut Rng) -> Vec<u8> + 'static,
) -> Row {
    let forge = move |_, rng: &mut Rng| (a_stranger(), forge(rng));
    Row::new(name, victim, forge).only_as_it_is()
}

/// A row that needs neither a secret nor sight of the path. It holds for an end that speaks wire 1 alone, too.
pub(crate) fn blind_rows_of_two() -> Vec<Row> {
    let forge = |rng: &mut Rng| with_header_of_two(random(rng, 400), [0x28, 1, 2, 3, 4]);
    let (victim, ..) = called_in_two();
    vec![
        row("data in wire 2 for no session of ours", called(), forge),
        row("the same, to an end that speaks it", victim, forge),
    ]
}

/// Rows that anyone who sees the path can forge.
pub(crate) fn seeing_rows_of_two() -> Vec<Row> {
    let (victim, _, header) = called_in_two();
    let made_up = row(
        "data in wire 2 for a session of ours, made up",
        victim,
        move |rng| with_header_of_two(random(rng, 400), header),
    );
    let (victim, data, _) = called_in_two();
    let again = row("data in wire 2, again", victim, move |_| data.clone());
    let (victim, _, [_, index @ ..]) = called_in_two();
    let other = row(
        "data in another wire than that of its keys",
        victim,
        move |rng| with_header(random(rng, 400), 0, index),
    );
    vec![made_up, again, other]
}

/// Rows that parity adds where it is on.
pub(crate) fn parity_rows_of_two() -> Vec<Row> {
    let words = FecStrength::from_words(24).expect("a strength");
    let (victim, ..) = called_with(words);
    let noise = Row::new(
        "parity on: noise from where a peer in wire 2 is",
        victim,
        |_, rng| (the_peer(), random(rng, 400)),
    );
    let (victim, ..) = called_with(words);
    let another_version = Row::new(
        "parity on: an initiation of another version from there",
        victim,
        |_, rng| {
            let mut octets = random(rng, 396);
            octets[0] = 0x21;
            (the_peer(), with_hec(octets))
        },
    );
    let (victim, data, _) = called_with(words);
    let mut code = PacketCode::new();
    let made_up = Row::new(
        "parity on: data in wire 2 for a session of ours, with any number of words",
        victim,
        move |n, rng| {
            let mut octets = data[..9].to_vec();
            octets[1] = if n % 2 == 0 { 24 } else { 255 };
            octets[6..].copy_from_slice(&random(rng, 3));
            let header_parity = FecStrength::from_words(2).expect("a strength");
            code.append_parity(&mut octets, 0, header_parity);
            octets.extend_from_slice(&random(rng, 1_400));
            (the_peer(), octets)
        },
    );
    [noise, another_version, made_up]
        .map(Row::only_as_it_is)
        .into()
}
