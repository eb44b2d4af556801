//! Content in wire 2: frames of the session's own, and of the machine inside, in one datagram.
//!
//! Method: two sessions without protection, of which one gets datagrams that the test makes, under the peer's keys.

use crate::session_pair::by_hand::{ByHand, joined, sent, take, the_peer};
use crate::session_pair::{PEER, unprotected};
use fulmar_net::session::{DropReason, LinkState, Passage, SessionEvent, reports, wire_2};
use fulmar_proto::machine::Machine;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::aerotp::short::write_followed;
use fulmar_proto::wire::checksum::crc32;

const START: Instant = Instant::START;
/// A probe: its number 9, and its time.
const PROBE: [u8; 9] = [2, 0, 0, 0, 9, 0, 0, 7, 0xD0];
const HEARTBEAT: [u8; 1] = [1];
const CLOSE: [u8; 1] = [4];
const PADDING: [u8; 4] = [7, 0, 0, 0];
/// Data in full of the machine: the test's own number 5.
const DATA: [u8; 5] = [0x68, 0, 0, 0, 5];
/// A MACK, which the machine of these tests leaves alone.
const MACK: [u8; 3] = [0x20, 1, 2];

/// An end that gets what the test makes.
struct Victim {
    session: ByHand,
    /// The header of the peer's datagrams without their counters.
    header: [u8; 5],
    counter: u32,
    now: Instant,
}

impl Victim {
    fn new() -> Self {
        let configs = unprotected().map(|mut config| {
            config.capabilities = vec![wire_2(), reports()];
            config
        });
        let now = START + Duration::from_secs(1);
        let (_, session, recorded) = joined(configs, now);
        let data = recorded.last().expect("data");
        let header = *data.first_chunk().expect("a header");
        assert_eq!(header[0], 0x28);
        Self {
            session,
            header,
            counter: 1_000,
            now,
        }
    }

    /// Lets content arrive for a place, and returns what leaves at once.
    fn take_at(&mut self, place: u8, counter: u32, content: &[u8]) -> Vec<Vec<u8>> {
        let [_, c0, c1, c2] = counter.to_be_bytes();
        let check = crc32(content) ^ crc32(&[place, 0, 0, 0, 0, c0, c1, c2]);
        let [_, index @ ..] = self.header;
        let mut octets = vec![0x28 | place];
        octets.extend_from_slice(&index);
        octets.extend_from_slice(&[c0, c1, c2]);
        octets.extend_from_slice(content);
        octets.extend_from_slice(&check.to_be_bytes());
        take(&mut self.session, self.now, the_peer(), &octets);
        let left = sent(&mut self.session, self.now);
        left.into_iter().map(|(_, octets)| octets).collect()
    }

    fn take(&mut self, content: &[u8]) -> Vec<Vec<u8>> {
        self.counter += 1;
        self.take_at(0, self.counter, content)
    }

    fn unknown(&self) -> u64 {
        self.session.counters().dropped(DropReason::Unknown)
    }

    /// The contents that the machine inside received.
    fn contents(&self) -> &[Vec<u8>] {
        &self.session.inner().contents
    }
}

/// Frames one behind the other.
fn frames(frames: &[&[u8]]) -> Vec<u8> {
    let (last, before) = frames.split_last().expect("one at least");
    let mut out = Vec::new();
    for frame in before {
        write_followed(frame, &mut out);
    }
    out.extend_from_slice(last);
    out
}

#[test]
fn frames_of_the_session_are_taken_and_the_whole_content_goes_on_if_any_is_the_machines() {
    let mut victim = Victim::new();
    let content = frames(&[&PROBE, &MACK, &HEARTBEAT, &DATA]);
    let left = victim.take(&content);
    assert_eq!(left.len(), 1, "the reply");
    assert_eq!(left[0][8..17], [3, 0, 0, 0, 9, 0, 0, 7, 0xD0]);
    assert_eq!(victim.contents(), [content]);
    assert_eq!(victim.session.inner().numbers, [5]);
    assert_eq!(victim.session.counters().received, 1);
    // Without one, it stays here.
    let left = victim.take(&frames(&[&PROBE, &HEARTBEAT]));
    assert_eq!((left.len(), victim.contents().len()), (1, 1));
    assert!(victim.take(&PADDING).is_empty());
    assert_eq!((victim.contents().len(), victim.unknown()), (1, 0));
}

#[test]
fn what_has_no_meaning_is_left_out_and_counted_and_the_rest_is_taken() {
    let mut victim = Victim::new();
    // A type that is kept for paths: skipped where a length says how long it is.
    let left = victim.take(&frames(&[&[0x13, 1, 2, 3], &PROBE]));
    assert_eq!((left.len(), victim.unknown()), (1, 1));
    let left = victim.take(&frames(&[&PROBE, &[0x0F], &[0x1F, 9]]));
    assert_eq!((left.len(), victim.unknown()), (1, 3));
    // A probe that is cut off has no meaning; nor has what follows a length beyond the end.
    let left = victim.take(&frames(&[&PROBE[..5], &HEARTBEAT]));
    assert_eq!((left.len(), victim.unknown()), (0, 4));
    let left = victim.take(&[&frames(&[&PROBE, &HEARTBEAT])[..10], &[0x82, 40, 1]].concat());
    assert_eq!((left.len(), victim.unknown()), (1, 5));
    // Nothing with a meaning at all: one datagram is dropped.
    for nothing in [&[][..], &[0x14], &[0x08, 1, 2], &[0x82, 40, 1], &PROBE[..3]] {
        let before = victim.unknown();
        assert!(victim.take(nothing).is_empty());
        assert_eq!(victim.unknown(), before + 1, "{nothing:?}");
    }
    assert!(victim.contents().is_empty());
    // The machine judges the types that are its own, those that it does not know as well.
    for (n, its) in (1..).zip([&[0x3F, 1][..], &[0xC5], &[0x41, 7], &[0, 1, 2]]) {
        let before = victim.unknown();
        assert!(victim.take(its).is_empty());
        assert_eq!((victim.contents().len(), victim.unknown()), (n, before));
    }
}

#[test]
fn sixteen_questions_in_one_datagram_get_one_answer() {
    let mut victim = Victim::new();
    let content = frames(&[&PROBE[..]; 16]);
    let left = victim.take(&content);
    assert_eq!(left.len(), 1);
    assert!(left[0].len() < content.len());
}

#[test]
fn a_close_ends_the_session_after_what_came_with_it() {
    let mut victim = Victim::new();
    victim.take(&frames(&[&CLOSE, &DATA]));
    assert_eq!(victim.session.inner().numbers, [5]);
    let link = victim.session.status(PEER).expect("a peer").link;
    assert_eq!(link, LinkState::Connecting);
}

#[test]
fn a_datagram_counts_once_whatever_is_in_it_and_one_without_data_does_not() {
    let mut victim = Victim::new();
    let probe_alone = PROBE.to_vec();
    let three = frames(&[&HEARTBEAT, &MACK, &DATA]);
    for (content, counted) in [(three, 1), (probe_alone, 1), (HEARTBEAT.to_vec(), 2)] {
        victim.take(&content);
        // A report that says that the peer sent ten: how many of them have come?
        let mut report = vec![6];
        for number in [10_u64, 0, 0] {
            report.extend_from_slice(&number.to_be_bytes());
        }
        victim.take(&report);
        let status = victim.session.status(PEER).expect("a peer");
        let arrived = Passage {
            sent: 10,
            arrived: counted,
        };
        assert_eq!(status.inward, arrived);
    }
}

#[test]
fn each_place_takes_each_counter_once_and_only_with_its_own_tag() {
    let mut victim = Victim::new();
    let replayed = |victim: &Victim| victim.session.counters().dropped(DropReason::Replayed);
    for place in 0..8 {
        for counter in [2_000, 2_001, 0xFF_FFFF] {
            victim.take_at(place, counter, &DATA);
        }
    }
    assert_eq!(victim.contents().len(), 24);
    for place in 0..8 {
        for counter in [2_000, 0xFF_FFFF, 100] {
            let before = replayed(&victim);
            victim.take_at(place, counter, &DATA);
            assert_eq!(replayed(&victim), before + 1, "{counter} of {place}");
        }
    }
    assert_eq!(victim.contents().len(), 24);
}

#[test]
fn pieces_of_content_are_put_together_and_go_on_as_content() {
    let mut victim = Victim::new();
    let piece = |index: u8, octets: &[u8]| [&[5, 0, 0, 0, 77, index, 2], octets].concat();
    victim.take(&piece(1, &DATA[2..]));
    assert!(victim.contents().is_empty());
    victim.take(&piece(0, &DATA[..2]));
    assert_eq!(victim.contents(), [DATA]);
    assert_eq!(victim.session.counters().reassembled, 1);
}

#[test]
fn content_of_a_restarted_peer_waits_for_the_news_of_its_restart() {
    let mut victim = Victim::new();
    let [a, _] = unprotected();
    let mut again = a;
    again.capabilities = vec![wire_2(), reports()];
    again.boot_epoch += 1 << 24;
    let mut caller = crate::session_pair::by_hand::session(again, 9);
    let now = victim.now + Duration::from_secs(1);
    caller.poll_transmit(now, &mut Vec::new());
    let now = now + Duration::from_secs(2);
    caller.handle_deadline(now);
    let source = caller.inner_mut();
    (source.left, source.octets) = (1, 100);
    let mut data = None;
    for _ in 0..2 {
        for (_, octets) in sent(&mut caller, now) {
            if octets[0] == 0x28 && octets.len() > 100 {
                data = Some(octets);
            } else if octets[0] != 0x28 {
                take(&mut victim.session, now, the_peer(), &octets);
            }
        }
        for (_, octets) in sent(&mut victim.session, now) {
            take(&mut caller, now, the_peer(), &octets);
        }
    }
    if data.is_none() {
        let all = sent(&mut caller, now);
        data = all
            .into_iter()
            .map(|(_, octets)| octets)
            .find(|octets| octets.len() > 100);
    }
    take(&mut victim.session, now, the_peer(), &data.expect("data"));
    assert_eq!(
        victim.session.poll_event(),
        Some(SessionEvent::PeerRestarted(PEER))
    );
    assert!(victim.contents().is_empty(), "not before it is known");
    while victim.session.poll_event().is_some() {}
    assert_eq!(victim.contents().len(), 1);
}
