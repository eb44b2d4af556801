//! The octets of a session are those of `docs/protocol/session.md`, section 10.
//!
//! Method: fixed seeds. The page's examples are read and compared; digests stand for sealed datagrams.

use crate::session_pair::by_hand::{joined, sent, take, the_peer};
use crate::session_pair::{Pair, Way, lossy, noise, preset_pair, unprotected};
use fulmar_net::session::{Capability, Security, SessionConfig, wire_2};
use fulmar_proto::units::{Duration, FecStrength, Instant};
use std::cell::RefCell;
use std::rc::Rc;

const PAGE: &str = include_str!("../../../docs/protocol/session.md");

/// The first datagrams of a handshake and of one TPDU, each way, as they leave.
fn exchanged(mut configs: [SessionConfig; 2]) -> Vec<Vec<u8>> {
    for config in &mut configs {
        config.capabilities.push(Capability {
            name: "splice".to_owned(),
            value: "1".to_owned(),
            must_agree: true,
        });
    }
    let log: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let record = Rc::clone(&log);
    let mut deliver = lossy(Duration::from_millis(1), 0.0, 1);
    let mut pair = Pair::new(
        configs,
        Box::new(move |way: Way, now, path, octets| {
            record.borrow_mut().push(octets.to_vec());
            deliver(way, now, path, octets)
        }),
    );
    pair.run(Duration::from_millis(10));
    log.take()
}

/// The octets of the example called `name`: lines of hex, `N x HH` for repetitions.
fn example(name: &str) -> Vec<u8> {
    let title = format!("Example: {name}\n");
    let (_, after) = PAGE.split_once(&title).expect("an example of that name");
    let (_, block) = after.split_once("```text\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    let mut octets = Vec::new();
    for line in block.lines() {
        let line = line.split('|').next().expect("a first part").trim();
        if let Some((count, octet)) = line.split_once(" x ") {
            let octet = u8::from_str_radix(octet, 16).expect("hex");
            octets.resize(
                octets.len() + count.parse::<usize>().expect("a count"),
                octet,
            );
            continue;
        }
        for octet in line.split_whitespace() {
            octets.push(u8::from_str_radix(octet, 16).expect("hex"));
        }
    }
    octets
}

fn hex(octets: &[u8]) -> String {
    use std::fmt::Write;
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x} ");
        text
    })
}

#[test]
fn unprotected_datagrams_are_the_examples_of_the_page() {
    let log = exchanged(unprotected());
    for (octets, name) in log.iter().zip([
        "initiation",
        "response",
        "probe",
        "probe of the responder",
        "probe reply",
    ]) {
        assert_eq!(hex(octets), hex(&example(name)), "{name}");
    }
}

#[test]
fn datagrams_in_wire_2_are_the_examples_of_the_page() {
    let configs = unprotected().map(|mut config| {
        config.capabilities.push(wire_2());
        config
    });
    let now = Instant::START + Duration::from_millis(2);
    let (mut caller, mut called, recorded) = joined(configs, now);
    let of = |recorded: &[Vec<u8>], message: u8| {
        let mut data = recorded.iter().filter(|octets| octets[0] == 0x28);
        let found = data.find(|octets| octets[8] == message);
        hex(found.expect("one of that kind"))
    };
    assert_eq!(of(&recorded, 2), hex(&example("probe in wire 2")));
    assert_eq!(of(&recorded, 3), hex(&example("probe reply in wire 2")));
    let data = example("data in wire 2");
    let content = data[8..data.len() - 4].to_vec();
    let source = caller.inner_mut();
    (source.left, source.content) = (1, Some(content.clone()));
    let left = sent(&mut caller, now);
    assert_eq!(of(&[left[0].1.clone()], content[0]), hex(&data));
    // It is what its receiver opens.
    take(&mut called, now, the_peer(), &data);
    assert_eq!(called.inner().contents, [content]);
}

#[test]
fn an_armoured_datagram_is_the_example_of_the_page() {
    let configs = unprotected().map(|mut config| {
        config.capabilities.push(wire_2());
        config.fec_words = FecStrength::from_words(1).expect("a strength");
        config
    });
    let now = Instant::START + Duration::from_millis(2);
    let (mut caller, mut called, _) = joined(configs, now);
    let example = example("armoured data in wire 2");
    let content = example[17..example.len() - 8].to_vec();
    let source = caller.inner_mut();
    (source.left, source.content) = (1, Some(content.clone()));
    let left = sent(&mut caller, now);
    assert_eq!(hex(&left[0].1), hex(&example));
    // Four wrong octets of the header, and two of what is behind it.
    let mut damaged = example.clone();
    for place in [0, 5, 9, 16, 20, example.len() - 1] {
        damaged[place] ^= 0x5A;
    }
    let later = now + Duration::from_millis(200);
    take(&mut called, later, the_peer(), &damaged);
    assert_eq!(called.inner().contents, [content]);
}

#[test]
fn sealed_datagrams_in_wire_2_are_pinned_by_their_digests() {
    let aes = Capability {
        name: "cipher".to_owned(),
        value: "aes-256-gcm".to_owned(),
        must_agree: false,
    };
    let digests = [noise(), preset_pair()].map(|configs| {
        [vec![], vec![aes.clone()]].map(|more| {
            let configs = configs.clone().map(|mut config| {
                config.capabilities = [vec![wire_2()], more.clone()].concat();
                config
            });
            let now = Instant::START + Duration::from_millis(2);
            let (_, _, recorded) = joined(configs, now);
            let data = recorded.iter().filter(|octets| octets[0] == 0x28);
            let data: Vec<_> = data.take(2).flatten().copied().collect();
            (data.len(), blake3::hash(&data).to_hex()[..16].to_owned())
        })
    });
    let pinned = [
        [(66, "802590320590cca5"), (66, "bc3b64cb11d89512")],
        [(66, "b374f6097417dc27"), (66, "110532b65861f3f4")],
    ];
    let pinned = pinned.map(|kind| kind.map(|(len, hash)| (len, hash.to_owned())));
    assert_eq!(digests, pinned);
}

#[test]
fn a_notice_is_the_example_of_the_page() {
    let mut configs = unprotected();
    configs[1].peers[0].security = Security::None { label: 6 };
    let log = exchanged(configs);
    assert_eq!(hex(&log[1]), hex(&example("notice")));
}

#[test]
fn sealed_datagrams_are_pinned_by_their_digests() {
    let digests = |configs| -> Vec<(usize, String)> {
        let log = exchanged(configs);
        let first = log.iter().take(5);
        first
            .map(|octets| (octets.len(), blake3::hash(octets).to_hex()[..16].to_owned()))
            .collect()
    };
    let pinned = |examples: [(usize, &str); 5]| examples.map(|(len, hash)| (len, hash.to_owned()));
    // The first two datagrams differ in their hellos; the others are sealed by the other cipher.
    let aes = Capability {
        name: "cipher".to_owned(),
        value: "aes-256-gcm".to_owned(),
        must_agree: false,
    };
    let made_for_aes = noise().map(|config| SessionConfig {
        capabilities: vec![aes.clone()],
        ..config
    });
    assert_eq!(
        digests(made_for_aes),
        pinned([
            (396, "2c39b375eb38e78a"),
            (316, "88ffc69581d2557b"),
            (37, "28e2fc0c04ae94b3"),
            (37, "df8e41f11b2070e7"),
            (37, "d27b382e0dcb219a")
        ])
    );
    assert_eq!(
        digests(noise()),
        pinned([
            (396, "279c371a36524ff8"),
            (316, "365729c5d59aac14"),
            (37, "423e34b82be19ed4"),
            (37, "f3777e8675acf946"),
            (37, "1037231fd740c37c")
        ])
    );
    assert_eq!(
        digests(preset_pair()),
        pinned([
            (348, "d0866cfdd44f332e"),
            (316, "0ded1af488338f10"),
            (37, "181ec1b7a563861f"),
            (37, "70ffbac543a937ce"),
            (37, "eba0cc4ecd39cf6e")
        ])
    );
}
