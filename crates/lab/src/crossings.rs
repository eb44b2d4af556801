//! Captures or event traces at both ends of a link as packets that crossed it: each with the time at which it was handed over, and when it
//! arrived, if it did.
//!
//! Two captures show a link from both ends: of two gateways, or of `tcpdump` at two hosts, whatever UDP they carry. One
//! capture shows it if it was made where both ends are seen: by `fulmar emulate`, or by `fulmar sim`. A datagram is found
//! again by its octets, so one that arrived with inverted bits counts as lost. In event traces it is a data TPDU, found again by
//! its number.
//!
//! # The two clocks
//! With two captures the delay in each direction is known only as well as the two clocks agree; both delays together are
//! exact. Where a datagram arrived before it was sent, by the clocks, the least delay is taken to be equal both ways.
//!
//! # Which end sends
//! Captures of a gateway say which datagrams leave it. Of the others the datagrams that arrive later at the second end, seen
//! from the first, go there: the difference of the clocks is the same for all. With datagrams in one direction alone, the
//! end that saw those that the other did not is the sender.

use crate::replay::ObservedPacket;
use crate::stoppable::StoppableReader;
use crate::traced::{is_trace, read_traced};
use crate::unread::UnreadRecording;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use fulmar_proto::units::Instant;
use fulmar_trace::{CapturePoint, CapturedPassages, PassedDatagram, is_capture, read_passages};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The packets of a recorded link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedLink {
    /// The packets of the forward direction, in the order in which they were handed over.
    pub there: Vec<ObservedPacket>,
    /// Those of the other direction.
    pub back: Vec<ObservedPacket>,
    /// The time by which the clocks of the two captures were brought together.
    pub clocks_apart: Duration,
    /// Remarks for the user: what was left out.
    pub remarks: Vec<String>,
}

impl RecordedLink {
    /// The link of one capture that shows both ends. Of a chain of the simulator it is the hop of this number. Setting `stop` gives
    /// the reading up.
    ///
    /// # Errors
    /// [`UnreadRecording`].
    pub fn open(capture: &Path, hop: usize, stop: &AtomicBool) -> Result<Self, UnreadRecording> {
        let name = capture.display().to_string();
        let (read, remarks) = read(capture, stop)?;
        let ways = one_file(&read, hop).ok_or_else(|| {
            let names = read.points.keys().filter_map(|point| point.interface.as_deref());
            let hops = names.filter_map(|name| {
                let (number, _) = name.strip_prefix("hop-")?.split_once('/')?;
                number.parse::<usize>().ok()
            });
            let problem = if let Some(last) = hops.max() {
                format!("has no hop {hop}; its last is hop {last}")
            } else {
                "shows one end of the link; give the other end's as well, such as that of the other gateway".to_owned()
            };
            UnreadRecording::Kind { name, problem }
        })?;
        let [there, back] = ways.map(|way| crossed(&way.sent, &way.arrived, 0, Edges::Whole));
        Ok(Self {
            there,
            back,
            clocks_apart: Duration::ZERO,
            remarks,
        })
    }

    /// The link between the ends of two captures; forward is from the first to the second. Setting `stop` gives the reading up.
    ///
    /// # Errors
    /// [`UnreadRecording`].
    pub fn between(one: &Path, other: &Path, stop: &AtomicBool) -> Result<Self, UnreadRecording> {
        let ((first, remarks), (second, others)) = (read(one, stop)?, read(other, stop)?);
        let ends = [first, second];
        let mut recorded = between(&ends).ok_or_else(|| UnreadRecording::Kind {
            name: format!("{} and {}", one.display(), other.display()),
            problem: "no datagram is in both; give two captures, or two event traces, of the two ends of one link, of \
                      the same time; captures with whole packets (tcpdump -s 0)"
                .to_owned(),
        })?;
        recorded.remarks.extend(remarks.into_iter().chain(others));
        Ok(recorded)
    }
}

/// Reads a capture or an event trace, with remarks for the user.
fn read(
    path: &Path,
    stop: &AtomicBool,
) -> Result<(CapturedPassages, Vec<String>), UnreadRecording> {
    let name = path.display().to_string();
    let unreadable = |error| UnreadRecording::Unreadable {
        name: name.clone(),
        error,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut source = BufReader::new(StoppableReader::new(file, stop));
    let head = source.fill_buf().map_err(unreadable)?;
    if is_trace(head) {
        return read_traced(&name, source);
    }
    if !is_capture(head) {
        let problem = "is no capture, pcap or pcapng, and no event trace; take one at each end with `fulmar gateway \
                       --capture FILE` or tcpdump -w FILE udp port PORT";
        return Err(UnreadRecording::Kind {
            name,
            problem: problem.to_owned(),
        });
    }
    let read = read_passages(&name, source)?;
    let remarks = read.cut.iter().map(|cut| format!("{name}: {cut}"));
    let remarks = remarks.collect();
    Ok((read, remarks))
}

/// The datagrams of one direction as they went on the link, and as they came off it.
#[derive(Default)]
struct Way<'a> {
    sent: Vec<&'a PassedDatagram>,
    arrived: Vec<&'a PassedDatagram>,
}

impl<'a> Way<'a> {
    fn of(
        read: &'a CapturedPassages,
        sent: impl Fn(&CapturePoint) -> bool,
        arrived: impl Fn(&CapturePoint) -> bool,
    ) -> Self {
        let at = |wanted: &dyn Fn(&CapturePoint) -> bool| {
            let points = read.points.iter().filter(|(point, _)| wanted(point));
            let mut passages: Vec<&PassedDatagram> = points.flat_map(|(_, all)| all).collect();
            passages.sort_by_key(|passage| passage.at);
            passages
        };
        Self {
            sent: at(&sent),
            arrived: at(&arrived),
        }
    }
}

/// Both directions, of a capture whose interfaces are both ends.
fn one_file(read: &CapturedPassages, hop: usize) -> Option<[Way<'_>; 2]> {
    let named = |name: String| move |point: &CapturePoint| point.interface.as_ref() == Some(&name);
    let of_emulator = |way: &str| {
        Way::of(
            read,
            named(format!("{way}/in")),
            named(format!("{way}/out")),
        )
    };
    let of_hop = |from: &str, to: &str| {
        let (from, to) = (
            named(format!("hop-{hop}/{from}")),
            named(format!("hop-{hop}/{to}")),
        );
        Way::of(
            read,
            move |point| from(point) && point.leaves == Some(true),
            move |point| to(point) && point.leaves == Some(false),
        )
    };
    let emulated = [of_emulator("up"), of_emulator("down")];
    let simulated = [
        of_hop("source-end", "sink-end"),
        of_hop("sink-end", "source-end"),
    ];
    let mut both = [emulated, simulated].into_iter();
    both.find(|[there, _]| !there.sent.is_empty())
}

/// A pair of points, one at each end, that the same datagrams pass.
struct PairedPoints<'a> {
    /// The datagrams at the first end, and at the second.
    passages: [&'a [PassedDatagram]; 2],
    /// Those that are at both ends.
    common: usize,
    /// The mean time from the first end to the second, by the clocks.
    apart: f64,
    /// Whether it goes from the first end to the second, if the captures say so.
    told: Option<bool>,
}

impl PairedPoints<'_> {
    fn octets(&self) -> u64 {
        let octets = |end: &[PassedDatagram]| end.iter().map(|passage| passage.len.0).sum::<u64>();
        octets(self.passages[0]).max(octets(self.passages[1]))
    }

    /// Datagrams that one end saw and the other did not.
    fn missing_at_second(&self) -> usize {
        self.passages[0].len() - self.common.min(self.passages[0].len())
    }

    fn missing_at_first(&self) -> usize {
        self.passages[1].len() - self.common.min(self.passages[1].len())
    }
}

fn between(ends: &[CapturedPassages; 2]) -> Option<RecordedLink> {
    let pairs = paired(ends);
    let middle = {
        let apart = || pairs.iter().map(|pair| pair.apart);
        let (least, most) = (
            apart().fold(f64::INFINITY, f64::min),
            apart().fold(f64::NEG_INFINITY, f64::max),
        );
        f64::midpoint(least, most)
    };
    let goes_there = |pair: &&PairedPoints<'_>| {
        pair.told.unwrap_or_else(|| {
            if pairs.len() > 1 {
                pair.apart >= middle
            } else if pair.missing_at_second() == pair.missing_at_first() {
                pair.apart >= 0.0
            } else {
                pair.missing_at_second() > pair.missing_at_first()
            }
        })
    };
    let busiest = |there: bool| {
        let of_way = pairs.iter().filter(|pair| goes_there(pair) == there);
        of_way.max_by_key(|pair| pair.octets())
    };
    let (there, back) = (busiest(true), busiest(false));
    if there.is_none() && back.is_none() {
        return None;
    }
    let chosen = usize::from(there.is_some()) + usize::from(back.is_some());
    let way = |pair: Option<&PairedPoints<'_>>, sender: usize| {
        let all = |end: usize| {
            let passages = pair.map(|pair| pair.passages[end]);
            let mut passages: Vec<PassedDatagram> = passages.unwrap_or_default().to_vec();
            passages.sort_by_key(|passage| passage.at);
            passages
        };
        (all(sender), all(1 - sender))
    };
    let (there, back) = (way(there, 0), way(back, 1));
    let least =
        |(sent, arrived): &(Vec<PassedDatagram>, Vec<PassedDatagram>)| least_delay(sent, arrived);
    let apart = clocks_apart(least(&there), least(&back));
    let observed = |(sent, arrived): &(Vec<PassedDatagram>, Vec<PassedDatagram>), shift: i128| {
        let (sent, arrived): (Vec<_>, Vec<_>) = (sent.iter().collect(), arrived.iter().collect());
        crossed(&sent, &arrived, shift, Edges::OfTwo)
    };
    // Times are the first clock's: the second is ahead of it by `apart`.
    let there = observed(&there, -apart);
    let mut back = observed(&back, apart);
    for packet in &mut back {
        packet.sent_at = shifted(packet.sent_at, -apart);
        packet.arrived_at = packet.arrived_at.map(|at| shifted(at, -apart));
    }
    let mut remarks = Vec::new();
    if pairs.len() > chosen {
        remarks.push(format!(
            "{} other pairs of sockets are in both captures and left out: the busiest in each direction is taken",
            pairs.len() - chosen
        ));
    }
    let apart_ns = u64::try_from(apart.unsigned_abs()).unwrap_or(u64::MAX);
    Some(RecordedLink {
        there,
        back,
        clocks_apart: Duration::from_nanos(apart_ns),
        remarks,
    })
}

/// The points of the two ends that belong together: each of the first with that of the second that has most of its datagrams.
fn paired(ends: &[CapturedPassages; 2]) -> Vec<PairedPoints<'_>> {
    let [first, second] = ends;
    // The same number of a TPDU may go both ways, in traces.
    let mut of_digest: HashMap<(u64, Option<bool>), (usize, Duration)> = HashMap::new();
    let others: Vec<(&CapturePoint, &Vec<PassedDatagram>)> = second.points.iter().collect();
    for (index, (point, passages)) in others.iter().enumerate() {
        for passage in *passages {
            of_digest
                .entry((passage.digest, point.leaves))
                .or_insert((index, passage.at));
        }
    }
    let mut pairs = Vec::new();
    for (point, passages) in &first.points {
        // Datagrams in common and the times between them, by the point of the second end.
        let mut common: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
        // Where both send, or both receive, the same datagrams came to both from elsewhere.
        let mut opposite = vec![Some(true), Some(false), None];
        opposite.retain(|leaves| leaves.is_none() || *leaves != point.leaves);
        for passage in passages {
            let there = opposite
                .iter()
                .find_map(|leaves| of_digest.get(&(passage.digest, *leaves)));
            if let Some(&(index, at)) = there {
                let apart = at.as_secs_f64() - passage.at.as_secs_f64();
                let (datagrams, times) = common.entry(index).or_default();
                *datagrams += 1;
                *times += apart;
            }
        }
        let found = common.into_iter();
        let best = found.max_by_key(|(index, (datagrams, _))| (*datagrams, usize::MAX - index));
        let Some((best, (common, times))) = best else {
            continue;
        };
        let (other, theirs) = others[best];
        pairs.push(PairedPoints {
            passages: [passages, theirs],
            common,
            apart: times / common as f64,
            told: point.leaves.or(other.leaves.map(|leaves| !leaves)),
        });
    }
    pairs
}

/// The least time from sending to arrival, in nanoseconds, by clocks that may differ.
fn least_delay(sent: &[PassedDatagram], arrived: &[PassedDatagram]) -> Option<i128> {
    let mut first: HashMap<u64, Option<Duration>> = HashMap::new();
    for passage in sent {
        // Octets that were sent twice say nothing of the delay.
        let known = first.entry(passage.digest);
        known
            .and_modify(|at| *at = None)
            .or_insert(Some(passage.at));
    }
    let delays = arrived.iter().filter_map(|passage| {
        let sent = (*first.get(&passage.digest)?)?;
        Some(nanos(passage.at) - nanos(sent))
    });
    delays.min()
}

/// The nanoseconds by which the second clock is ahead, if one of the least delays, there and back, cannot be.
fn clocks_apart(there: Option<i128>, back: Option<i128>) -> i128 {
    match (there, back) {
        (Some(there), Some(back)) if there.min(back) < 0 => (there - back) / 2,
        (Some(there), None) if there < 0 => there,
        (None, Some(back)) if back < 0 => -back,
        _ => 0,
    }
}

fn nanos(at: Duration) -> i128 {
    i128::try_from(at.as_nanos()).unwrap_or(i128::MAX)
}

fn instant(nanos: i128) -> Instant {
    Instant::START + Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn shifted(at: Instant, by: i128) -> Instant {
    instant(nanos(at.saturating_since(Instant::START)) + by)
}

/// The datagrams whose fate a recording knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edges {
    /// All: both ends are in one capture.
    Whole,
    /// Those from the first that arrived to the last that did: one of two captures may have begun later, or ended sooner.
    OfTwo,
}

/// The datagrams of one direction with their arrivals, `shift` nanoseconds later than captured.
fn crossed(
    sent: &[&PassedDatagram],
    arrived: &[&PassedDatagram],
    shift: i128,
    edges: Edges,
) -> Vec<ObservedPacket> {
    let mut waiting: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (index, passage) in sent.iter().enumerate() {
        waiting.entry(passage.digest).or_default().push_back(index);
    }
    let mut arrivals: Vec<Option<i128>> = vec![None; sent.len()];
    let mut last_delay: Option<i128> = None;
    for passage in arrived {
        let Some(waiting) = waiting.get_mut(&passage.digest) else {
            continue;
        };
        let at = nanos(passage.at) + shift;
        let delay = |index: usize| at - nanos(sent[index].at);
        let under_way = waiting.iter().take_while(|&&index| delay(index) >= 0);
        // Of equal datagrams it is the one that took about as long as the packet before, and those ahead of it were lost.
        let likeness = |&(_, &index): &(usize, &usize)| {
            last_delay.map_or(delay(index), |last| (delay(index) - last).abs())
        };
        let Some((place, &index)) = under_way.enumerate().min_by_key(likeness) else {
            continue;
        };
        if waiting.len() == 1 {
            last_delay = Some(delay(index));
        }
        waiting.drain(..=place);
        arrivals[index] = Some(at);
    }
    let known = match edges {
        Edges::Whole => 0..sent.len(),
        Edges::OfTwo => {
            let first = arrivals
                .iter()
                .position(Option::is_some)
                .unwrap_or_default();
            let last = arrivals.iter().rposition(Option::is_some);
            first..last.map_or(first, |last| last + 1)
        }
    };
    known
        .map(|index| ObservedPacket {
            sent_at: instant(nanos(sent[index].at)),
            len: sent[index].len,
            arrived_at: arrivals[index].map(instant),
        })
        .collect()
}
