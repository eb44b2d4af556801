//! Ends that do not fit together say so, once, at both ends, in words that help.

use crate::session_pair::{PATH, PEER, Pair, Way, configs, lossy, noise, preset, secret};
use fulmar_net::session::{
    Capability, HandshakeRefusal, Hint, LinkState, Mismatch, PeerIndex, Security, SecurityKinds,
    SessionConfig, SessionEvent,
};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Duration;
use fulmar_proto::wire::checksum::hec;

const DELAY: Duration = Duration::from_millis(5);

/// The words of both ends within a minute, which must not bring them together.
fn said(configs: [SessionConfig; 2]) -> [Vec<SessionEvent<()>>; 2] {
    let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
    pair.run(Duration::from_secs(59));
    for way in [Way::Forward, Way::Back] {
        let link = pair.session(way).status(PEER).expect("a peer").link;
        assert_eq!(link, LinkState::Connecting, "{way:?}");
    }
    [pair.events(Way::Forward), pair.events(Way::Back)]
}

fn turned_away(hint: Hint) -> Vec<SessionEvent<()>> {
    vec![SessionEvent::TurnedAway {
        peer: PEER,
        path: PATH,
        hint,
    }]
}

fn refused(peer: Option<PeerIndex>, reason: HandshakeRefusal) -> Vec<SessionEvent<()>> {
    vec![SessionEvent::Refused {
        path: PATH,
        peer,
        reason,
    }]
}

fn to(key: u8) -> Security {
    Security::Noise {
        peer: secret(key).public(),
        preset: None,
    }
}

#[test]
fn a_wrong_public_key_of_the_peer_is_said_once_at_both_ends() {
    // The caller holds key 9 for the listener's, whose key is 2.
    let [caller, listener] = said(configs([to(9), to(1)], [Some(secret(1)), Some(secret(2))]));
    assert_eq!(
        caller,
        turned_away(Hint::WrongPublicKey(secret(9).public()))
    );
    let wrong = HandshakeRefusal::WrongPublicKey(secret(2).public());
    assert_eq!(listener, refused(None, wrong));
}

#[test]
fn a_caller_that_is_not_configured_is_named_by_its_key() {
    let [caller, listener] = said(configs([to(2), to(8)], [Some(secret(1)), Some(secret(2))]));
    assert_eq!(caller, turned_away(Hint::UnknownCaller(secret(1).public())));
    let unknown = HandshakeRefusal::UnknownPeer(secret(1).public());
    assert_eq!(listener, refused(None, unknown));
}

#[test]
fn different_preset_keys_are_said_once_at_both_ends() {
    let security = |key| Security::Preset { key: preset(key) };
    let [caller, listener] = said(configs([security(3), security(4)], [None, None]));
    assert_eq!(caller, turned_away(Hint::Mismatch(Mismatch::PresetKey)));
    assert_eq!(
        listener,
        refused(None, HandshakeRefusal::Mismatch(Mismatch::PresetKey))
    );
}

#[test]
fn different_presets_on_top_of_right_keys_are_said_once_at_both_ends() {
    let with = |key, n| Security::Noise {
        peer: secret(key).public(),
        preset: Some(preset(n)),
    };
    let keys = [Some(secret(1)), Some(secret(2))];
    let [caller, listener] = said(configs([with(2, 5), with(1, 6)], keys));
    let forged = SessionEvent::Refused {
        path: PATH,
        peer: Some(PEER),
        reason: HandshakeRefusal::ResponseForged(SecurityKinds::NOISE),
    };
    assert_eq!(caller, [forged]);
    assert_eq!(
        listener,
        refused(
            Some(PEER),
            HandshakeRefusal::Unconfirmed(SecurityKinds::NOISE)
        )
    );
}

#[test]
fn kinds_of_security_that_differ_are_said_at_both_ends() {
    let all = [
        (SecurityKinds::NOISE, to(2), to(1)),
        (
            SecurityKinds::PRESET,
            Security::Preset { key: preset(3) },
            Security::Preset { key: preset(3) },
        ),
        (
            SecurityKinds::NONE,
            Security::None { label: 0 },
            Security::None { label: 0 },
        ),
    ];
    for (calls, caller, _) in &all {
        for (takes, _, listener) in all.iter().filter(|(takes, ..)| takes != calls) {
            let listeners = (*takes == SecurityKinds::NOISE).then(|| secret(2));
            let keys = [Some(secret(1)), listeners];
            let securities = [caller.clone(), listener.clone()];
            let [caller, listener] = said(configs(securities, keys));
            let differ = |ours, theirs| Mismatch::Security { ours, theirs };
            let told = differ(*calls, *takes);
            assert_eq!(caller, turned_away(Hint::Mismatch(told)));
            let told = differ(*takes, *calls);
            assert_eq!(listener, refused(None, HandshakeRefusal::Mismatch(told)));
        }
    }
}

#[test]
fn a_capability_that_must_agree_and_does_not_is_said_once_with_both_values() {
    let mut configs = noise();
    for (config, value) in configs.iter_mut().zip(["1", "2"]) {
        config.capabilities.push(Capability {
            name: "splice".to_owned(),
            value: value.to_owned(),
            must_agree: true,
        });
    }
    let mismatch = |ours: &str, theirs: &str| {
        vec![SessionEvent::Mismatch {
            peer: PEER,
            what: "splice".to_owned(),
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
        }]
    };
    assert_eq!(said(configs), [mismatch("1", "2"), mismatch("2", "1")]);
}

#[test]
fn capabilities_reach_the_other_end() {
    let mut configs = noise();
    let software = Capability {
        name: "software".to_owned(),
        value: "fulmar 0.1.0".to_owned(),
        must_agree: false,
    };
    configs[0].capabilities.push(software.clone());
    let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
    pair.run(Duration::from_secs(1));
    let status = pair.session(Way::Back).status(PEER).unwrap();
    assert_eq!(status.capabilities, [software]);
    assert_eq!(status.link, LinkState::Up);
}

#[test]
fn another_version_is_said_at_both_ends() {
    let mut pair = Pair::new(
        noise(),
        Box::new(|way, _, path, octets| {
            let mut octets = octets.to_vec();
            if way == Way::Forward {
                // As if the caller spoke version 2.
                octets[0] = 0x20 | octets[0] & 0x0F;
                octets[2..4].fill(0);
                let hec = hec(&octets[..2], &octets[4..12]);
                octets[2..4].copy_from_slice(&hec.to_be_bytes());
            }
            vec![(DELAY, path, octets)]
        }),
    );
    pair.run(Duration::from_secs(50));
    let version = |theirs| HandshakeRefusal::Version { ours: 1, theirs };
    assert_eq!(pair.events(Way::Back), refused(None, version(2)));
    // The answer names the listener's version; here it is the same, since only the datagram lies.
    assert_eq!(pair.events(Way::Forward), refused(Some(PEER), version(1)));
}

#[test]
fn ends_without_security_in_other_places_of_their_lists_say_so() {
    let bare = |label| Security::None { label };
    let [caller, listener] = said(configs([bare(0), bare(1)], [None, None]));
    assert_eq!(caller, turned_away(Hint::Mismatch(Mismatch::Label)));
    assert_eq!(
        listener,
        refused(None, HandshakeRefusal::Mismatch(Mismatch::Label))
    );
}

#[test]
fn of_two_gateways_with_one_key_the_later_has_it_and_the_earlier_is_told() {
    let mut configs = noise();
    configs[0].boot_epoch = 1 << 41;
    let mut copy = configs[0].clone();
    copy.boot_epoch = 1 << 40;
    let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
    pair.run(Duration::from_secs(1));
    // The gateway of the earlier start calls again, from an address of its own.
    let own = PathId(8);
    pair.medium = Box::new(move |way, _, path, octets| match (way, path) {
        (Way::Forward, _) => vec![(DELAY, own, octets.to_vec())],
        (Way::Back, path) if path == own => vec![(DELAY, PATH, octets.to_vec())],
        (Way::Back, _) => Vec::new(),
    });
    pair.restart(Way::Forward, copy, 99);
    pair.run(Duration::from_secs(50));
    assert_eq!(pair.events(Way::Forward), turned_away(Hint::Superseded));
    let said = pair.events(Way::Back);
    let old = |event: &&SessionEvent<()>| {
        matches!(
            event,
            SessionEvent::Refused {
                reason: HandshakeRefusal::OldEpoch,
                ..
            }
        )
    };
    assert_eq!(said.iter().filter(old).count(), 1, "{said:?}");
    let restarted = |event: &SessionEvent<()>| matches!(event, SessionEvent::PeerRestarted(_));
    assert!(!said.iter().any(restarted), "{said:?}");
}
