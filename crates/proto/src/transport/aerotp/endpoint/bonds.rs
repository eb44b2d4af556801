//! Peers that are reached over several paths: a connection lives on the first, its home, and what it sends leaves on any.
//!
//! Each path has a budget of its own, found or told. A datagram leaves on the quickest path whose budget allows it. On a slower one
//! it leaves if it arrives sooner there than by waiting for its turn on the quicker ones: so bulk fills all of them, and
//! a thin flow keeps to the quickest. What is repeated of a thin flow leaves on another path than before, where that is no slower
//! than to wait for one more repetition: whatever keeps the one from carrying it, the other may carry it.

use super::{AerotpEndpoint, Leaving};
use crate::machine::{Deadline, PathFacts, PathId};
use crate::transport::aerotp::connection::Connection;
use crate::transport::aerotp::schedule::PathSchedule;
use crate::transport::aerotp::sender::PathTaken;
use crate::transport::aerotp::{ConnectionId, RateSource};
use crate::units::{Bitrate, ByteCount, Duration, Instant};

/// The paths to one peer, at most.
pub(super) const PATHS_MAX: usize = 8;
/// The connections that are asked for one that gains by a slower path, at most.
const ASKED_MAX: usize = 16;
/// A round trip of which nothing is known, longer than any.
const UNKNOWN: Duration = Duration::from_secs(1 << 20);

/// The paths to one peer. Each keeps its place, by which transmissions name it.
#[derive(Clone, Debug, Default)]
pub(super) struct Bond {
    paths: [Option<PathId>; PATHS_MAX],
    costs: [u8; PATHS_MAX],
    /// The home's round trip as it was told, until something is seen there.
    home_round_trip: Option<Duration>,
    /// Paths whose budget allows more than any connection gains by.
    declined: [bool; PATHS_MAX],
}

impl Bond {
    /// The paths, the home first.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.into_iter().flatten()
    }

    /// The path in a place.
    pub(super) fn path_in(&self, place: u8) -> Option<PathId> {
        self.paths.get(usize::from(place)).copied().flatten()
    }

    fn place(&self, path: PathId) -> Option<usize> {
        self.paths.iter().position(|one| *one == Some(path))
    }
}

/// The time for which a repetition waits for the budget of the path that it is for, at most, and the part of a round trip.
const WAIT_MAX: Duration = Duration::from_millis(10);
const WAIT_PART: u32 = 8;
/// The round trips after which an answer is there if the first transmission was lost, by way of the second.
const REPEATED_ROUND_TRIPS: u32 = 3;

/// A path on which something may leave.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: usize,
    path: PathId,
    round_trip: Duration,
    /// Whether it may be down.
    is_doubted: bool,
}

impl Candidate {
    const NONE: Self = Self {
        place: 0,
        path: PathId(0),
        round_trip: UNKNOWN,
        is_doubted: true,
    };

    /// The time after which an answer is expected.
    fn expected(&self) -> Duration {
        if self.is_doubted {
            self.round_trip * REPEATED_ROUND_TRIPS
        } else {
            self.round_trip
        }
    }
}

/// The paths to a peer that are up, that with the first answer first. Those of which no round trip is known come last.
#[derive(Clone, Copy, Debug)]
struct Candidates {
    all: [Candidate; PATHS_MAX],
    count: usize,
}

impl Candidates {
    const NONE: Self = Self {
        all: [Candidate::NONE; PATHS_MAX],
        count: 0,
    };

    fn push(&mut self, one: Candidate) {
        self.all[self.count] = one;
        self.count += 1;
    }

    fn as_slice(&self) -> &[Candidate] {
        &self.all[..self.count]
    }

    /// The path of one of them, as a connection needs to know it.
    fn taken(&self, one: Candidate) -> PathTaken {
        let is_near = |other: &Candidate| {
            other.place != one.place && other.round_trip <= one.round_trip * REPEATED_ROUND_TRIPS
        };
        PathTaken {
            place: u8::try_from(one.place).unwrap_or_default(),
            // Nothing is known of answers from there, so none is late.
            round_trip: if one.round_trip < UNKNOWN {
                one.round_trip
            } else {
                Duration::ZERO
            },
            is_one_of_several: true,
            has_other: self.as_slice().iter().any(is_near),
            repeats_doubted: false,
        }
    }

    /// Those on which a repetition may leave in place of `one`.
    fn others(&self, one: Candidate) -> impl Iterator<Item = Candidate> {
        let latest = one.round_trip * REPEATED_ROUND_TRIPS;
        let is_other = move |other: &&Candidate| {
            other.place != one.place && !other.is_doubted && other.round_trip <= latest
        };
        self.as_slice().iter().filter(is_other).copied()
    }

    fn sort(&mut self) {
        let count = self.count;
        self.all[..count].sort_unstable_by_key(|one| (one.expected(), one.place));
    }
}

/// The quicker paths that a slower one is held against.
#[derive(Clone, Copy, Debug)]
struct Quicker {
    /// The time at which one of them takes the next datagram.
    next_at: Instant,
    /// The sum of their rates.
    rate: Bitrate,
    /// The least of their round trips.
    round_trip: Duration,
}

fn sum(a: Bitrate, b: Bitrate) -> Bitrate {
    let bits = a
        .as_bits_per_second()
        .saturating_add(b.as_bits_per_second());
    Bitrate::from_bits_per_second(bits)
}

impl AerotpEndpoint {
    /// Lets what connections on `home` send leave on `path` as well, and takes what comes there for theirs. Returns whether there
    /// was a place for it.
    pub fn bond(&mut self, now: Instant, home: PathId, path: PathId, facts: PathFacts) -> bool {
        self.now = now;
        let was_held = self.is_held(home);
        let bond = self.bonds.entry(home).or_default();
        bond.paths[0] = Some(home);
        bond.home_round_trip = facts.home_round_trip.or(bond.home_round_trip);
        if let Some(place) = bond.place(path) {
            bond.costs[place] = facts.cost;
            return true;
        }
        let Some(free) = bond.paths.iter().position(Option::is_none) else {
            return false;
        };
        bond.paths[free] = Some(path);
        bond.costs[free] = facts.cost;
        self.expect_round_trip(path, facts.round_trip);
        self.homes.insert(path, home);
        let of_home = self.rate_sources.get(&home).unwrap_or(&self.config.rate);
        let found = RateSource::Found {
            bound: None,
            first: None,
            sharing: of_home.sharing(),
        };
        // Nobody tells what arrives there where the home's rate is told: that is all that is known of it.
        let is_told_of = self.acked_ways.get(&path).is_some_and(|ways| ways.out);
        let unknown = if is_told_of { found } else { *of_home };
        let source = facts.rate.map_or(unknown, RateSource::Told);
        self.rate_sources.insert(path, source);
        self.path(path);
        self.path(home);
        if was_held {
            let since = self.held.get(&home).copied();
            self.hold_connections(now, home, since);
        }
        true
    }

    /// Undoes [`AerotpEndpoint::bond`]: what is under way on `path` is held for lost.
    pub fn part(&mut self, now: Instant, path: PathId) {
        self.now = now;
        let Some(home) = self.homes.remove(&path) else {
            return;
        };
        let was_held = self.is_held(home);
        if let Some(place) = self.bonds.get(&home).and_then(|bond| bond.place(path)) {
            // While it is one of the bond, so that its losses are counted there; nothing goes on by it.
            self.held.entry(path).or_insert(now);
            self.lose_path(now, home, place);
            if let Some(bond) = self.bonds.get_mut(&home) {
                bond.paths[place] = None;
                if bond.paths.iter().flatten().count() == 1 {
                    self.bonds.remove(&home);
                }
            }
        }
        self.held.remove(&path);
        self.doubted.remove(&path);
        self.paths.remove(&path);
        self.acked_ways.remove(&path);
        self.left_logs.remove(&path);
        self.path_sizes.remove(&path);
        self.rate_sources.remove(&path);
        self.round_trips.remove(&path);
        if !was_held && self.is_held(home) {
            self.hold_connections(now, home, None);
        }
    }

    /// Tells that `path`, one of several to a peer, may be down, or was heard again. While it is in doubt, bulk leaves on the
    /// others, and so does a thin flow if one of them is not slower than a repetition.
    pub fn doubt(&mut self, now: Instant, path: PathId, is_doubted: bool) {
        self.now = now;
        let home = self.home_of(path);
        if is_doubted && self.place_of(home, path).is_some() {
            self.doubted.insert(path);
        } else {
            self.doubted.remove(&path);
        }
    }

    /// The path on which the connections live to which what comes on `path` belongs.
    pub fn home_of(&self, path: PathId) -> PathId {
        self.homes.get(&path).copied().unwrap_or(path)
    }

    /// The paths to the peer at `home`.
    pub(super) fn paths_to(&self, home: PathId) -> impl Iterator<Item = PathId> + '_ {
        let bond = self.bonds.get(&home);
        let alone = bond.is_none().then_some(home);
        let bonded = bond.into_iter().flat_map(|bond| bond.paths);
        alone.into_iter().chain(bonded.flatten())
    }

    /// Whether the peer that lives at `path` has several.
    pub(super) fn is_bonded(&self, path: PathId) -> bool {
        self.bonds.contains_key(&path)
    }

    /// Holds lost what is under way on a path of the peer at `home`.
    pub(super) fn lose_path(&mut self, now: Instant, home: PathId, place: usize) {
        let place = u8::try_from(place).unwrap_or_default();
        let carries_on = !self.is_held(home);
        let ids: Vec<ConnectionId> = self.connections_on(home).collect();
        for id in ids {
            self.with(now, id, |connection| {
                if carries_on {
                    connection.go_on_by_others(now);
                }
                connection.on_path_down(now, place);
            });
        }
    }

    pub(super) fn place_of(&self, home: PathId, path: PathId) -> Option<usize> {
        self.bonds.get(&home)?.place(path)
    }

    /// The round trip of a path by itself.
    fn round_trip_of(&self, path: PathId) -> Option<Duration> {
        let schedule = self.paths.get(&path);
        let seen = schedule.and_then(PathSchedule::round_trip);
        seen.or_else(|| self.round_trips.get(&path).copied())
    }

    /// The paths of a bond that are up and cost least, by their places.
    fn usable<'a>(&'a self, bond: &'a Bond) -> impl Iterator<Item = (usize, PathId)> + 'a {
        let up = |(place, path): (usize, &Option<PathId>)| {
            let path = path.filter(|path| !self.held.contains_key(path))?;
            Some((place, path))
        };
        let cost = |(place, path): &(usize, PathId)| {
            let told = self.told.get(path).and_then(|told| told.cost);
            told.unwrap_or(bond.costs[*place])
        };
        let least = bond.paths.iter().enumerate().filter_map(up);
        let least = least.map(|one| cost(&one)).min();
        let up = bond.paths.iter().enumerate().filter_map(up);
        up.filter(move |one| Some(cost(one)) == least)
    }

    /// The paths to the peer at `home` on which something may leave.
    fn candidates(&self, home: PathId) -> Candidates {
        let mut found = Candidates::NONE;
        let Some(bond) = self.bonds.get(&home) else {
            return found;
        };
        for (place, path) in self.usable(bond) {
            let told = bond.home_round_trip.filter(|_| path == home);
            found.push(Candidate {
                place,
                path,
                round_trip: self.round_trip_of(path).or(told).unwrap_or(UNKNOWN),
                is_doubted: self.doubted.contains(&path),
            });
        }
        found.sort();
        found
    }

    /// The quickest path to the peer at `home`, for control.
    pub(super) fn control_path(&self, home: PathId) -> PathId {
        if !self.bonds.contains_key(&home) {
            return home;
        }
        let candidates = self.candidates(home);
        candidates.as_slice().first().map_or(home, |one| one.path)
    }

    /// The connection whose turn it is to send to the peer at `home`, and the path on which it does.
    pub(super) fn next_bonded(&mut self, now: Instant, home: PathId) -> Option<Leaving> {
        let candidates = self.candidates(home);
        let has_sure = candidates.as_slice().iter().any(|one| !one.is_doubted);
        let mut quicker: Option<Quicker> = None;
        for one in candidates.as_slice() {
            let schedule = self.path(one.path);
            schedule.update_rate(now);
            let allows = schedule.allows(now);
            let (next_at, rate) = (schedule.next_at().at, schedule.pacer.rate());
            let is_for_thin = has_sure && one.is_doubted;
            if allows {
                let arrives_before = |quicker: Quicker| {
                    let waiting = quicker.next_at.saturating_since(now);
                    waiting + quicker.round_trip <= one.expected()
                };
                let mut found = match quicker {
                    // A path that carries for sure is soon free.
                    Some(quicker) if is_for_thin && arrives_before(quicker) => None,
                    _ if is_for_thin => self.next_that(home, |connection| connection.is_thin()),
                    None => self.next_of_any(home),
                    Some(quicker) => self.next_gaining(now, home, (one.round_trip, quicker)),
                };
                if let Some((id, false)) = found
                    && self.waits_for_other(now, *one, (id, &candidates))
                {
                    self.put_back(home, id);
                    let place = u8::try_from(one.place).ok();
                    found = self.next_that(home, |connection| connection.repeats_on() != place);
                }
                if let Some(bond) = self.bonds.get_mut(&home) {
                    bond.declined[one.place] = found.is_none();
                }
                if let Some((id, is_spare)) = found {
                    let before = self.repeats_on(id);
                    let one = self.instead(now, *one, (before, &candidates));
                    return Some(Leaving {
                        id,
                        is_spare,
                        path: one.path,
                        taken: PathTaken {
                            repeats_doubted: self.is_doubted(home, before),
                            ..candidates.taken(one)
                        },
                    });
                }
            } else if let Some(bond) = self.bonds.get_mut(&home) {
                bond.declined[one.place] = false;
            }
            if is_for_thin {
                continue;
            }
            quicker = Some(quicker.map_or(
                Quicker {
                    next_at,
                    rate,
                    round_trip: one.round_trip,
                },
                |before| Quicker {
                    next_at: before.next_at.min(next_at),
                    rate: sum(before.rate, rate),
                    ..before
                },
            ));
        }
        None
    }

    /// Whether what a thin flow repeats on this path left here before and may leave on another one in a moment.
    fn waits_for_other(
        &mut self,
        now: Instant,
        one: Candidate,
        (id, candidates): (ConnectionId, &Candidates),
    ) -> bool {
        if self.repeats_on(id).map(usize::from) != Some(one.place) {
            return false;
        }
        let soon = now + WAIT_MAX.min(one.round_trip / WAIT_PART);
        let mut is_any_soon = false;
        for other in candidates.others(one) {
            let schedule = self.path(other.path);
            schedule.update_rate(now);
            if schedule.allows(now) {
                return false;
            }
            let at = schedule.next_at().at;
            is_any_soon |= now < at && at <= soon;
        }
        is_any_soon
    }

    /// The path on which the connection sends in place of the one whose turn it is: what is repeated of a thin flow leaves on
    /// another one than before.
    fn instead(
        &mut self,
        now: Instant,
        one: Candidate,
        (before, candidates): (Option<u8>, &Candidates),
    ) -> Candidate {
        if before.map(usize::from) != Some(one.place) {
            return one;
        }
        for other in candidates.others(one) {
            let schedule = self.path(other.path);
            schedule.update_rate(now);
            if schedule.allows(now) {
                return other;
            }
        }
        one
    }

    /// The place of the path on which what a thin flow repeats next left before.
    fn repeats_on(&mut self, id: ConnectionId) -> Option<u8> {
        self.connections.get_mut(&id)?.connection.repeats_on()
    }

    /// Whether the path in a place may be down, or is.
    fn is_doubted(&self, home: PathId, place: Option<u8>) -> bool {
        let bond = self.bonds.get(&home);
        let path = bond
            .zip(place)
            .and_then(|(bond, place)| bond.path_in(place));
        path.is_some_and(|path| self.doubted.contains(&path) || self.held.contains_key(&path))
    }

    fn next_of_any(&mut self, home: PathId) -> Option<(ConnectionId, bool)> {
        let schedule = self.paths.get_mut(&home)?;
        let data = schedule.next().map(|id| (id, false));
        data.or_else(|| schedule.next_spare().map(|id| (id, true)))
    }

    /// The next connection whose datagram arrives sooner by a path of this round trip than by waiting for quicker ones.
    fn next_gaining(
        &mut self,
        now: Instant,
        home: PathId,
        (round_trip, quicker): (Duration, Quicker),
    ) -> Option<(ConnectionId, bool)> {
        // Those that were asked before have their turns before.
        let mut ahead = 0_u64;
        self.next_that(home, |connection| {
            let Some(own) = connection.octets_ahead() else {
                return true;
            };
            ahead = ahead.saturating_add(own);
            let turn = quicker.rate.time_to_send(ByteCount(ahead));
            let waiting = quicker.next_at.saturating_since(now) + turn;
            round_trip / 2 < waiting + quicker.round_trip / 2
        })
    }

    /// The next connection of which this holds. The turns of the others are kept.
    fn next_that(
        &mut self,
        home: PathId,
        mut holds: impl FnMut(&mut Connection) -> bool,
    ) -> Option<(ConnectionId, bool)> {
        let mut others = [None; ASKED_MAX];
        let mut found = None;
        for other in &mut others {
            let Some(id) = self.paths.get_mut(&home)?.next() else {
                break;
            };
            let entry = self.connections.get_mut(&id);
            if entry.is_some_and(|entry| holds(&mut entry.connection)) {
                found = Some((id, false));
                break;
            }
            *other = Some(id);
        }
        for id in others.into_iter().rev().flatten() {
            self.put_back(home, id);
        }
        found
    }

    /// Gives a connection its turn back.
    fn put_back(&mut self, home: PathId, id: ConnectionId) {
        if let Some(entry) = self.connections.get(&id) {
            let (priority, share) = (entry.connection.priority(), entry.connection.share());
            self.path(home).put_back(priority, share, id);
        }
    }

    /// The time at which something may leave to the peer at `home`, by the budgets of its paths.
    pub(super) fn bonded_next_at(&self, home: PathId) -> Option<Deadline> {
        let bond = self.bonds.get(&home)?;
        let open = self
            .usable(bond)
            .filter(|(place, _)| !bond.declined[*place]);
        let open = open.filter_map(|(_, path)| Some(self.paths.get(&path)?.next_at()));
        open.min_by_key(|deadline| deadline.at)
    }
}
