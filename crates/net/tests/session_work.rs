//! The price of a stranger's datagram, counted in operations: this measures the table of `docs/threat-model.md`,
//! row by row.
//!
//! Method: a session of each kind in virtual time gets 30,000 datagrams of one kind a second, or as many as the
//! row says, for two seconds; what the second of these cost is compared with the table. Once more with as much parity
//! as a header can claim, at an end that has parity off: that must change nothing.

mod floods;
mod forging;
mod rows;
mod second_wire;

use crate::session_pair::by_hand::{sent, take};
use forging::{random, with_hec};
use fulmar_net::session::{Work, performed};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Duration;
use rows::{MOST_PARITY, Row, blind_rows, calling_rows, parity_rows, seeing_rows};
use second_wire::{blind_rows_of_two, parity_rows_of_two, seeing_rows_of_two};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The work in the second second of a flood.
fn measured(row: &mut Row, claims_parity: bool) -> Work {
    let mut rng = Rng::from_seed(17).child(row.name);
    let step = Duration::from_secs(1) / row.rate;
    let mut before = row.victim.work();
    // As the curve and the hash were called, not as the session says.
    let (mut key_operations, mut hashes) = (0, 0);
    for n in 0..2 * row.rate {
        if n == row.rate {
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
        let began = performed();
        take(&mut row.victim, row.now, place, &octets);
        drop(sent(&mut row.victim, row.now));
        row.now += step;
        if n >= row.rate {
            let done = performed();
            key_operations += done.key_operations - began.key_operations;
            hashes += done.hashes - began.hashes;
        }
    }
    let after = row.victim.work();
    let counted = [
        after.key_operations - before.key_operations,
        after.hashes - before.hashes,
    ];
    assert_eq!(
        counted,
        [key_operations, hashes],
        "{}: as the session counts",
        row.name
    );
    Work {
        key_operations,
        hashes,
        openings: after.openings - before.openings,
        decodes: after.decodes - before.decodes,
        answers: after.answers - before.answers,
    }
}

/// A price: so many operations for ten datagrams, and so many a second besides.
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

    /// Whether it matches the operations counted in a second of `rate` datagrams: no more, and not much less.
    fn holds(self, counted: u64, rate: u32) -> bool {
        let besides = counted.checked_sub(self.for_ten * u64::from(rate) / 10);
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
    let rows = [
        blind_rows(),
        blind_rows_of_two(),
        calling_rows(),
        seeing_rows(),
        seeing_rows_of_two(),
        parity_rows(),
        parity_rows_of_two(),
    ];
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
                if !price.holds(count, row.rate) {
                    let name = row.name;
                    wrong.push(format!(
                        "{name}, parity claimed {claims_parity}: {count} of {what} for {}, {price:?}",
                        row.rate
                    ));
                }
            }
        }
    }
    let listed: BTreeSet<String> = table.into_keys().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(listed, names, "a row of the table that nothing measures");
}
