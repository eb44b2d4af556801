//! Over a link without a way back a file comes whole at every receiver that loses no more than was promised, and what cannot be
//! proved, or was heard before, changes nothing.
//!
//! Method: one sender and several receivers, machines all of them, in virtual time. Each receiver loses datagrams by draws of its own.
//! A receiver that ever transmitted would end the test.

#![expect(clippy::cast_possible_truncation, reason = "sizes of a test")]

use fulmar_net::one_way::{
    Announcement, BlockSends, CounterFile, FileLayout, FileTag, ONE_WAY_OVERHEAD, OneWayEvent,
    OneWayPlan, OneWayPromise, OneWayReceiver, OneWayRefusal, OneWayReport, OneWaySeal,
    OneWaySendEvent, OneWaySender, OneWaySent, StreamId, SymbolSource, sends_for_overhead,
    sends_for_promise, sends_for_reports, symbol_bytes_in,
};
use fulmar_net::session::{Entropy, PresetKey};
use fulmar_proto::fec::long_block::{LongBlockDecoder, LongBlockEncoder};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, Strict};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Instant, Probability};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
/// IPv4 and UDP.
pub(crate) const LOWER: ByteCount = ByteCount(28);
const MTU: usize = 1_500;

pub(crate) fn share(value: f64) -> Probability {
    Probability::new(value).expect("a share")
}

pub(crate) fn preset(seed: u8) -> PresetKey {
    PresetKey::generate(&mut Entropy::from_seed([seed; 32]))
}

/// A file in memory, with the parity of each block made once.
#[derive(Clone)]
pub(crate) struct Memory {
    octets: Arc<Vec<u8>>,
    layout: FileLayout,
    units: u32,
    parity: BTreeMap<u16, Vec<u8>>,
}

impl SymbolSource for Memory {
    fn append(&mut self, block: u16, unit: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let dimensions = self.layout.block(block).expect("it has it");
        let place = self.layout.octets(block);
        let octets = &self.octets[place.start as usize..place.end as usize];
        let bytes = usize::from(dimensions.symbol_bytes());
        let sources = u32::from(dimensions.sources());
        if let Some(repair) = unit.checked_sub(sources) {
            let units = self.units;
            let parity = self.parity.entry(block).or_insert_with(|| {
                let encoder = LongBlockEncoder::new(dimensions, octets);
                let mut parity = Vec::new();
                while parity.len() < units as usize * bytes {
                    let next = sources + (parity.len() / bytes) as u32;
                    parity.extend(encoder.repairs(next, units));
                }
                parity
            });
            out.extend_from_slice(&parity[repair as usize * bytes..][..bytes]);
        } else {
            let start = (unit as usize * bytes).min(octets.len());
            let end = (start + bytes).min(octets.len());
            out.extend_from_slice(&octets[start..end]);
            out.resize(out.len() + bytes - (end - start), 0);
        }
        Ok(())
    }
}

/// A file that is to be sent.
pub(crate) struct Sent {
    pub(crate) octets: Arc<Vec<u8>>,
    pub(crate) announcement: Announcement,
    pub(crate) layout: FileLayout,
}

impl Sent {
    pub(crate) fn new(size: usize, symbol_bytes: u16) -> Self {
        let mut octets = vec![0; size];
        Rng::from_seed(size as u64).fill(&mut octets);
        let layout = FileLayout::within(size as u64, symbol_bytes).expect("it fits");
        Self {
            announcement: Announcement {
                name: "file".to_owned(),
                size: size as u64,
                digest: *blake3::hash(&octets).as_bytes(),
                symbol_bytes: layout.symbol_bytes(),
                promise: OneWayPromise {
                    loss: share(0.2),
                    residual: share(1e-6),
                    units: 0,
                },
                is_last: false,
                asks: None,
            },
            octets: Arc::new(octets),
            layout,
        }
    }

    /// Its units, of which repair symbols up to this number are made at once.
    pub(crate) fn memory(&self, units: u32) -> Memory {
        Memory {
            octets: Arc::clone(&self.octets),
            layout: self.layout,
            units,
            parity: BTreeMap::new(),
        }
    }

    fn tag(&self) -> FileTag {
        self.announcement.tag()
    }

    fn sender(&self, state: &Path, start: u32, sends: Vec<BlockSends>, rounds: u32) -> Sending {
        let key = preset(1);
        let counters =
            CounterFile::open(state, &key, &mut Entropy::from_seed([7; 32])).expect("it opens");
        let stream = StreamId {
            sender: counters.sender(),
            start,
        };
        let most = sends
            .iter()
            .map(|sends| sends.first + sends.units * rounds)
            .max()
            .unwrap_or(0);
        let plan = OneWayPlan {
            announcement: self.announcement.clone(),
            sends,
            rounds: Some(rounds),
            announcements: 9,
            path: PathId(0),
            rate: RATE,
            lower_overhead: LOWER,
            returns: None,
        };
        let symbols = self.memory(most);
        let seal = OneWaySeal::new(&key, stream).expect("a key");
        let machine = OneWaySender::new(plan, self.layout, seal, Box::new(symbols));
        Sending {
            machine: Strict::new(machine),
            counters,
            now: Instant::START,
            is_over: false,
        }
    }

    fn promised(&self, state: &Path, start: u32) -> Sending {
        let sends = sends_for_promise(&self.layout, share(0.2), share(1e-6)).expect("possible");
        self.sender(state, start, sends, 1)
    }
}

/// A sender, its counters and its time.
struct Sending {
    machine: Strict<OneWaySender>,
    counters: CounterFile,
    now: Instant,
    is_over: bool,
}

impl Sending {
    /// The next datagram; `None` at the end.
    fn next(&mut self) -> Option<(Instant, Vec<u8>)> {
        loop {
            while let Some(event) = self.machine.poll_event() {
                match event {
                    OneWaySendEvent::NeedsCounters => {
                        let counters = self.counters.reserve().expect("there are some");
                        self.machine.app().grant(counters);
                    }
                    OneWaySendEvent::Finished => self.is_over = true,
                    OneWaySendEvent::Failed(error) => panic!("{error}"),
                }
            }
            let mut octets = Vec::new();
            if self.machine.poll_transmit(self.now, &mut octets).is_some() {
                return Some((self.now, octets));
            }
            let rest = self.machine.poll_event();
            assert!(rest.is_none(), "an event after the drain: {rest:?}");
            if self.is_over {
                return None;
            }
            let deadline = self.machine.next_deadline().expect("it is not over");
            self.now = deadline.at;
            self.machine.handle_deadline(self.now);
        }
    }

    fn sent(&self) -> OneWaySent {
        self.machine.inner().sent()
    }
}

/// A receiver, what it loses, and the symbols that it kept.
struct Receiving {
    machine: Strict<OneWayReceiver>,
    rng: Rng,
    loss: f64,
    symbols: BTreeMap<(u16, u16), Vec<u8>>,
    events: Vec<&'static str>,
}

impl Receiving {
    fn new(seed: u64, loss: f64) -> Self {
        Self::of(OneWayReceiver::new(preset(1)), seed, loss)
    }

    fn of(machine: OneWayReceiver, seed: u64, loss: f64) -> Self {
        Self {
            machine: Strict::new(machine),
            rng: Rng::from_seed(seed),
            loss,
            symbols: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn take(&mut self, now: Instant, octets: &[u8]) {
        let datagram = Datagram {
            path: PathId(0),
            octets,
            ecn: Ecn::NotCapable,
        };
        self.machine.handle_datagram(now, datagram);
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                OneWayEvent::Announced(_) => self.events.push("announced"),
                OneWayEvent::Symbol(_, block, unit, octets) => {
                    let before = self.symbols.insert((block, unit), octets);
                    assert!(before.is_none(), "unit {unit} of block {block} came twice");
                }
                OneWayEvent::Whole(_) => self.events.push("whole"),
                OneWayEvent::Ended(_) => self.events.push("ended"),
                OneWayEvent::SetAside(_) => self.events.push("set aside"),
                OneWayEvent::NeedsCounters => panic!("it has nothing to say"),
            }
        }
        let mut out = Vec::new();
        assert!(
            self.machine.poll_transmit(now, &mut out).is_none() && out.is_empty(),
            "a receiver spoke"
        );
        assert!(self.machine.next_deadline().is_none());
    }

    fn come_or_be_lost(&mut self, now: Instant, octets: &[u8]) {
        if !self.rng.chance(self.loss) {
            self.take(now, octets);
        }
    }

    /// The file out of the symbols.
    fn file(&self, sent: &Sent) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        for number in sent.layout.numbers() {
            let mut decoder = LongBlockDecoder::new(sent.layout.block(number).expect("it has it"));
            for (&(_, unit), octets) in self.symbols.range((number, 0)..=(number, u16::MAX)) {
                decoder.add(unit.into(), octets).expect("it is needed");
            }
            file.extend(decoder.rebuild()?);
        }
        file.truncate(sent.octets.len());
        Some(file)
    }

    fn report(&self, sent: &Sent) -> OneWayReport {
        let report = self
            .machine
            .inner()
            .report(sent.tag())
            .expect("it is known");
        let text = report.to_text(&preset(1)).expect("text");
        OneWayReport::from_text(&text, &preset(1)).expect("it is proved")
    }

    fn refused(&self, why: OneWayRefusal) -> u64 {
        self.machine.inner().refused(why)
    }
}

/// Sends everything to all receivers.
fn run(sending: &mut Sending, receivers: &mut [&mut Receiving]) {
    while let Some((now, octets)) = sending.next() {
        assert!(octets.len() + 28 <= MTU);
        for receiver in &mut *receivers {
            receiver.come_or_be_lost(now, &octets);
        }
    }
}

#[test]
fn ten_megabytes_come_whole_at_three_receivers_that_lose_a_fifth_for_less_than_1_38_octets_each() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(10_000_000, symbol_bytes_in(MTU - 28));
    assert_eq!(
        usize::from(sent.layout.symbol_bytes()) + ONE_WAY_OVERHEAD + 1,
        MTU - 28
    );
    let mut sending = sent.promised(place.path(), 1);
    let [mut one, mut two, mut three] = [901, 902, 903].map(|seed| Receiving::new(seed, 0.2));
    run(&mut sending, &mut [&mut one, &mut two, &mut three]);
    for receiver in [&one, &two, &three] {
        assert_eq!(receiver.events, ["announced", "whole", "ended"]);
        assert!(
            receiver.file(&sent).as_ref() == Some(&*sent.octets),
            "other octets"
        );
        let report = receiver.report(&sent);
        assert!(
            report.is_whole && (report.loss - 0.2).abs() < 0.02,
            "{report:?}"
        );
    }
    let of_each = sending.sent().octets.0 as f64 / 1e7;
    println!("{of_each:.4} octets for each, {:?}", sending.sent());
    assert!(of_each <= 1.38, "{of_each} octets for each");
}

#[test]
fn blocks_of_a_long_file_and_a_file_of_any_small_size_come_whole() {
    let place = tempfile::tempdir().expect("a directory");
    // Symbols of two octets make three blocks.
    for (start, size, symbol_bytes) in [
        (1, 90_001, 2),
        (2, 0, 1_432),
        (3, 1, 1_432),
        (4, 5_000, 1_432),
    ] {
        let sent = Sent::new(size, symbol_bytes);
        let mut sending = sent.promised(place.path(), start);
        let mut receiver = Receiving::new(u64::from(start) + 40, 0.2);
        run(&mut sending, &mut [&mut receiver]);
        assert_eq!(receiver.events, ["announced", "whole", "ended"], "{size}");
        assert!(
            receiver.file(&sent).as_ref() == Some(&*sent.octets),
            "{size}: other octets"
        );
    }
}

#[test]
fn who_comes_in_the_middle_of_a_carousel_has_the_file_a_round_later() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(100_000, 100);
    let sends = sends_for_overhead(&sent.layout, 0.35).expect("possible");
    let round = u64::from(sends[0].units);
    let mut sending = sent.sender(place.path(), 1, sends, 3);
    let mut late = Receiving::new(5, 0.2);
    let mut heard = 0;
    while let Some((now, octets)) = sending.next() {
        let so_far = sending.sent();
        if so_far.sources + so_far.repairs > round / 2 && !late.events.contains(&"whole") {
            heard += 1;
            late.come_or_be_lost(now, &octets);
        }
    }
    assert_eq!(late.events, ["announced", "whole"]);
    assert!(late.file(&sent).as_ref() == Some(&*sent.octets));
    assert!(
        heard < round + round / 10,
        "{heard} datagrams, {round} in a round"
    );
}

#[test]
fn symbols_that_come_before_the_first_announcement_count() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(3_000, 100);
    let mut sending = sent.promised(place.path(), 1);
    let mut receiver = Receiving::new(5, 0.0);
    let mut number = 0;
    while let Some((now, octets)) = sending.next() {
        number += 1;
        // The first nine datagrams announce the file.
        if number > 9 {
            receiver.take(now, &octets);
        }
    }
    assert!(receiver.file(&sent).as_ref() == Some(&*sent.octets));
}

#[test]
fn what_is_forged_cut_damaged_or_heard_before_changes_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(20_000, 100);
    let mut sending = sent.promised(place.path(), 1);
    let mut receiver = Receiving::new(5, 0.0);
    let mut recorded = Vec::new();
    let mut rng = Rng::from_seed(8);
    while let Some((now, octets)) = sending.next() {
        let mut wrong = octets.clone();
        let octet = rng.below(wrong.len() as u64) as usize;
        wrong[octet] ^= 1 << rng.below(8);
        receiver.take(now, &wrong);
        receiver.take(now, &octets[..rng.below(octets.len() as u64) as usize]);
        receiver.take(now, &octets);
        receiver.take(now, &octets);
        recorded.push(octets);
    }
    let count = recorded.len() as u64;
    assert_eq!(receiver.events, ["announced", "whole", "ended"]);
    assert!(receiver.file(&sent).as_ref() == Some(&*sent.octets));
    assert_eq!(receiver.refused(OneWayRefusal::Repeated), count);
    assert_eq!(
        receiver.refused(OneWayRefusal::Seal) + receiver.refused(OneWayRefusal::Form),
        2 * count
    );
    // A recording is worth nothing later, be it at the same receiver or after its restart.
    let now = sending.now;
    let mut restarted = OneWayReceiver::new(preset(1));
    for (sender, floor) in receiver.machine.inner().floors() {
        restarted.restore_sender(sender, floor);
    }
    let mut restarted = Receiving::of(restarted, 1, 0.0);
    receiver.machine.app().settle(sent.tag());
    receiver.drain(now);
    for octets in &recorded {
        receiver.take(now, octets);
        restarted.take(now, octets);
    }
    assert_eq!(receiver.events.len(), 3);
    assert!(restarted.events.is_empty() && restarted.symbols.is_empty());
    assert_eq!(restarted.refused(OneWayRefusal::Repeated), count);
    // Under another key nothing is taken.
    let mut stranger = Receiving::of(OneWayReceiver::new(preset(2)), 1, 0.0);
    for octets in &recorded {
        stranger.take(now, octets);
    }
    assert_eq!(
        (stranger.refused(OneWayRefusal::Seal), stranger.events.len()),
        (count, 0)
    );
}

#[test]
fn reports_carried_back_by_hand_have_the_rest_sent_once_for_all() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(200_000, 100);
    let mut first = sent.promised(place.path(), 1);
    // Twice the loss that was promised for, one of them a little more.
    let mut one = Receiving::new(21, 0.4);
    let mut two = Receiving::new(22, 0.42);
    let mut whole = Receiving::new(23, 0.1);
    run(&mut first, &mut [&mut one, &mut two, &mut whole]);
    let now = first.now;
    drop(first);
    let reports = [&one, &two, &whole].map(|receiver| receiver.report(&sent));
    let missing = reports.each_ref().map(|report| report.missing_symbols);
    assert!(
        missing[0] > 100 && missing[1] > 100 && missing[2] == 0,
        "{missing:?}"
    );
    assert_eq!(one.events, ["announced", "ended"]);
    let goal = (share(0.42), share(1e-6));
    let sends =
        sends_for_reports(&sent.announcement, &sent.layout, &reports, goal).expect("possible");
    let more: u32 = sends.iter().map(|sends| sends.units).sum();
    // As many as the one needs that misses most, and what its loss takes: not the sum of both.
    let most = missing.iter().max().copied().unwrap_or(0) as f64;
    assert!(
        f64::from(more) < most / 0.58 * 1.35,
        "{more} for {missing:?}"
    );
    let mut second = sent.sender(place.path(), 2, sends, 1);
    second.now = now;
    run(&mut second, &mut [&mut one, &mut two]);
    for receiver in [&one, &two] {
        assert!(receiver.file(&sent).as_ref() == Some(&*sent.octets));
        assert_eq!(receiver.report(&sent).missing_symbols, 0);
    }
    assert_eq!(second.sent().sources, 0, "only repair that nobody has");
}

#[test]
fn a_report_that_was_altered_or_is_of_another_file_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(2_000, 100);
    let mut sending = sent.promised(place.path(), 1);
    let mut receiver = Receiving::new(5, 0.7);
    run(&mut sending, &mut [&mut receiver]);
    let report = receiver.report(&sent);
    let text = report.to_text(&preset(1)).expect("text");
    assert!(
        OneWayReport::from_text(&text, &preset(2)).is_err(),
        "another key"
    );
    let altered = text.replacen("\"missing\": ", "\"missing\": 1", 1);
    assert_ne!(altered, text);
    assert!(OneWayReport::from_text(&altered, &preset(1)).is_err());
    for cut in 0..text.trim_end().len() {
        assert!(
            OneWayReport::from_text(&text[..cut], &preset(1)).is_err(),
            "{cut}"
        );
    }
    let other = Sent::new(2_002, 100);
    let goal = (share(0.2), share(1e-6));
    assert!(sends_for_reports(&other.announcement, &other.layout, &[report], goal).is_err());
}

#[test]
fn a_restarted_receiver_needs_only_what_its_log_lacks() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(50_000, 100);
    let mut sending = sent.promised(place.path(), 1);
    let mut before = Receiving::new(5, 0.2);
    let mut after = None;
    while let Some((now, octets)) = sending.next() {
        if sending.sent().datagrams == 300 {
            let mut machine = OneWayReceiver::new(preset(1));
            machine.restore_file(
                now,
                sent.announcement.clone(),
                before.symbols.keys().copied(),
            );
            let mut restarted = Receiving::of(machine, 6, 0.2);
            restarted.drain(now);
            restarted.symbols = before.symbols.clone();
            after = Some(restarted);
        }
        match &mut after {
            Some(after) => after.come_or_be_lost(now, &octets),
            None => before.come_or_be_lost(now, &octets),
        }
    }
    let after = after.expect("it was restarted");
    assert!(before.file(&sent).is_none());
    assert!(after.file(&sent).as_ref() == Some(&*sent.octets));
    assert_eq!(after.events, ["whole", "ended"]);
}

#[test]
fn no_two_datagrams_of_any_two_starts_have_the_same_number() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(1_000, 100);
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..3 {
        // The same start, as after a copy of a virtual machine: the counters alone must keep them apart.
        let mut sending = sent.promised(place.path(), 1);
        while let Some((_, octets)) = sending.next() {
            assert!(
                numbers.insert(octets[1..15].to_vec()),
                "a number came twice"
            );
        }
    }
}

/// The announcement of one of many small files, sealed.
fn announced(number: usize, place: &Path) -> (Sent, Vec<u8>) {
    let mut sent = Sent::new(1_000, 100);
    sent.announcement.name = format!("file-{number}");
    let mut sending = sent.promised(place, number as u32);
    let (_, octets) = sending.next().expect("an announcement");
    (sent, octets)
}

#[test]
fn the_file_that_was_heard_longest_ago_makes_room_and_is_taken_up_again() {
    let place = tempfile::tempdir().expect("a directory");
    let mut receiver = Receiving::new(5, 0.0);
    let mut now = Instant::START;
    let mut first = None;
    for number in 0..65 {
        let (sent, octets) = announced(number, place.path());
        assert_eq!(
            receiver
                .events
                .iter()
                .filter(|&&event| event == "set aside")
                .count(),
            0
        );
        now += fulmar_proto::units::Duration::from_secs(1);
        receiver.take(now, &octets);
        first.get_or_insert(sent);
    }
    let first = first.expect("there were some");
    assert_eq!(receiver.events.last(), Some(&"announced"));
    assert_eq!(
        receiver
            .events
            .iter()
            .filter(|&&event| event == "set aside")
            .count(),
        1
    );
    assert_eq!(receiver.refused(OneWayRefusal::Full), 0);
    assert!(receiver.machine.inner().file(first.tag()).is_none());
    // Announced once more, it goes on with what was kept of it.
    let mut again = first.promised(place.path(), 0);
    let (_, octets) = again.next().expect("an announcement");
    receiver.take(now, &octets);
    let kept = (0..9).map(|unit| (0, unit));
    receiver.machine.app().hold(first.tag(), kept);
    receiver.drain(now);
    let file = receiver
        .machine
        .inner()
        .file(first.tag())
        .expect("it is known");
    assert_eq!(file.missing(), 1);
    receiver
        .machine
        .app()
        .hold(first.tag(), [(0, 9)].into_iter());
    receiver.drain(now);
    assert_eq!(receiver.events.last(), Some(&"whole"));
}

#[test]
fn reports_after_the_units_wrapped_have_all_units_sent_once() {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(2_000, 100);
    let mut sending = sent.promised(place.path(), 1);
    let mut receiver = Receiving::new(5, 0.7);
    run(&mut sending, &mut [&mut receiver]);
    let mut report = receiver.report(&sent);
    assert_eq!(report.blocks.len(), 1);
    report.blocks[0].next = u32::MAX / 2;
    let goal = (share(0.2), share(1e-6));
    let sends =
        sends_for_reports(&sent.announcement, &sent.layout, &[report], goal).expect("possible");
    assert_eq!(sends[0].first, 0);
    assert!(sends[0].units >= 4 * 20, "{sends:?}");
}
