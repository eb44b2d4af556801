//! Requests go to the sender that invited them, and a receiver that had no numbers for them asks for some again.

use super::super::test_file::announcement;
use super::*;
use crate::session::Entropy;

const SPREAD_MS: u16 = 500;

fn key() -> PresetKey {
    PresetKey::generate(&mut Entropy::from_seed([1; 32]))
}

fn stream(sender: u32) -> StreamId {
    StreamId { sender, start: 1 }
}

fn counters() -> OneWayCounters {
    OneWayCounters(0..1_000)
}

fn seal(sender: u32) -> OneWaySeal {
    let mut seal = OneWaySeal::new(&key(), stream(sender)).expect("a key");
    seal.grant(counters());
    seal
}

/// A receiver whose requests go back along the path of the invitation.
fn receiver() -> OneWayReceiver {
    let returns = OneWayReturn {
        seal: OneWaySeal::new(&key(), stream(900)).expect("a key"),
        path: None,
        rng: Rng::from_seed(3),
    };
    let mut receiver = OneWayReceiver::with_return(key(), returns);
    assert_eq!(receiver.poll_event(), Some(OneWayEvent::NeedsCounters));
    receiver
}

/// Hands the receiver an invitation of this sender, for a file of its own.
fn invite(
    receiver: &mut OneWayReceiver,
    seal: &mut OneWaySeal,
    number: u16,
    path: PathId,
) -> FileTag {
    let announcement = Announcement {
        name: format!("file-{}", path.0),
        asks: Some(Invitation {
            number,
            spread_ms: SPREAD_MS,
        }),
        ..announcement()
    };
    let mut octets = Vec::new();
    seal.seal(Form::Announcement, &mut octets, |out| {
        announcement.write(out);
        Ok::<(), core::convert::Infallible>(())
    })
    .expect("nothing fails")
    .expect("there are counters");
    let datagram = Datagram {
        path,
        octets: &octets,
        ecn: Ecn::NotCapable,
    };
    receiver.handle_datagram(Instant::START, datagram);
    announcement.tag()
}

/// The requests that leave in the time for which they are spread: the file, and the path.
fn requests(receiver: &mut OneWayReceiver) -> BTreeMap<FileTag, PathId> {
    let mut found = BTreeMap::new();
    let now = Instant::START + Duration::from_millis(u64::from(SPREAD_MS));
    let mut out = Vec::new();
    while let Some(transmit) = receiver.poll_transmit(now, &mut out) {
        let mut content = Vec::new();
        OneWayOpener::new(key())
            .open(&out, &mut content)
            .expect("it is proved");
        let request = Request::read(&content).expect("it is a request");
        found.insert(request.file, transmit.path);
        out.clear();
    }
    found
}

#[test]
fn a_request_goes_to_the_sender_that_invited_it_whoever_invites_meanwhile() {
    let mut receiver = receiver();
    receiver.grant(counters());
    let (mut a, mut b) = (seal(1), seal(2));
    let first = invite(&mut receiver, &mut a, 1, PathId(7));
    let second = invite(&mut receiver, &mut b, 1, PathId(8));
    let expected = BTreeMap::from([(first, PathId(7)), (second, PathId(8))]);
    assert_eq!(requests(&mut receiver), expected);
}

#[test]
fn a_receiver_without_numbers_asks_for_some_at_each_invitation_until_it_has_some() {
    let mut receiver = receiver();
    let mut sender = seal(1);
    for number in 1..=3 {
        let tag = invite(&mut receiver, &mut sender, number, PathId(7));
        let events: Vec<OneWayEvent> = core::iter::from_fn(|| receiver.poll_event()).collect();
        let wants = events
            .iter()
            .filter(|event| **event == OneWayEvent::NeedsCounters);
        assert_eq!(wants.count(), 1, "{events:?}");
        if number < 3 {
            // The disk is full: nothing is granted.
            assert_eq!(requests(&mut receiver), BTreeMap::new());
            assert!(receiver.next_deadline().is_none(), "it would spin");
        } else {
            receiver.grant(counters());
            assert_eq!(requests(&mut receiver), BTreeMap::from([(tag, PathId(7))]));
        }
    }
    invite(&mut receiver, &mut sender, 4, PathId(7));
    assert_eq!(receiver.poll_event(), None, "there are numbers left");
}
