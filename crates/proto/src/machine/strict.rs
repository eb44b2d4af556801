//! A wrapper that panics when the contract is broken.

use super::{
    AckedWays, ArrivalMap, Carried, Datagram, Deadline, Machine, PathAck, PathFacts, PathId,
    PathSizes, Sealed, TpduForm, Transmit,
};
use crate::told::ToldFacts;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use core::cell::Cell;

/// The number of times that a machine may set the same deadline without progress before it counts
/// as spinning.
const SAME_DEADLINE_MAX: u32 = 1_000;

/// Wraps a machine in tests and debug builds and panics on a breach of the contract: time going
/// backwards, input before the drain ended, a wake-up before its time, a deadline in the past
/// after a drain, the same deadline and reason 1,000 times over, a [`Transmit::len`] that does not
/// match what was written.
#[derive(Debug)]
pub struct Strict<M> {
    machine: M,
    now: Instant,
    events_drained: bool,
    transmits_drained: bool,
    seen: Cell<Option<(Instant, Deadline)>>,
    seen_count: Cell<u32>,
}

impl<M: Machine> Strict<M> {
    /// Wraps `machine`.
    pub const fn new(machine: M) -> Self {
        Self {
            machine,
            now: Instant::START,
            events_drained: true,
            transmits_drained: true,
            seen: Cell::new(None),
            seen_count: Cell::new(0),
        }
    }

    /// The machine, for application calls. They count as input: drain afterwards.
    pub fn app(&mut self) -> &mut M {
        self.touch();
        &mut self.machine
    }

    /// The machine, to take its notes out. This is no input: nothing has to be drained.
    pub const fn notes(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The machine, to look at.
    pub const fn inner(&self) -> &M {
        &self.machine
    }

    /// The machine, for what the session around it says at `now`.
    fn told(&mut self, now: Instant) -> &mut M {
        self.advance(now);
        self.app()
    }

    fn touch(&mut self) {
        self.events_drained = false;
        self.transmits_drained = false;
    }

    fn advance(&mut self, now: Instant) {
        assert!(
            now >= self.now,
            "time went backwards: {now} after {}",
            self.now
        );
        self.now = now;
    }

    fn input(&mut self, now: Instant, what: &str) {
        self.advance(now);
        assert!(
            self.events_drained && self.transmits_drained,
            "{what} at {now} before the drain ended"
        );
        self.touch();
    }
}

impl<M: Machine> Machine for Strict<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.input(now, "handle_datagram");
        self.seen_count.set(0);
        self.machine.handle_datagram(now, datagram);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.input(now, "handle_deadline");
        let named = self.machine.next_deadline();
        assert!(
            named.is_none_or(|deadline| deadline.at <= now),
            "handle_deadline at {now} before its time: {named:?}"
        );
        self.machine.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.advance(now);
        let before = out.len();
        let transmit = self.machine.poll_transmit(now, out);
        let written = out
            .len()
            .checked_sub(before)
            .expect("a machine only appends to the buffer");
        assert_eq!(
            transmit.map_or(0, |t| t.len),
            written,
            "Transmit::len is not what was written"
        );
        if transmit.is_some() {
            self.seen_count.set(0);
            self.events_drained = false;
        }
        self.transmits_drained = transmit.is_none();
        transmit
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        let event = self.machine.poll_event();
        if event.is_some() {
            self.seen_count.set(0);
            self.transmits_drained = false;
        }
        self.events_drained = event.is_none();
        event
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let deadline = self.machine.next_deadline();
        if self.events_drained && self.transmits_drained {
            if let Some(Deadline { at, why }) = deadline {
                assert!(
                    at >= self.now,
                    "deadline `{why}` at {at} lies in the past of {}",
                    self.now
                );
            }
            // Application calls may come at any rate while a machine waits, so only repetitions
            // within one instant are a spin.
            let seen = deadline.map(|deadline| (self.now, deadline));
            let repeats = if seen == self.seen.get() {
                self.seen_count.get() + 1
            } else {
                0
            };
            self.seen.set(seen);
            self.seen_count.set(repeats);
            assert!(
                deadline.is_none() || repeats < SAME_DEADLINE_MAX,
                "the same deadline {repeats} times without progress: {deadline:?}"
            );
        }
        deadline
    }
}

impl<M: Carried> Carried for Strict<M> {
    const SHORT: bool = M::SHORT;

    fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        self.told(now).hold(now, path, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        self.told(now).set_path_sizes(now, path, sizes)
    }

    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount) {
        self.told(now).on_sent_below(now, path, wire);
    }

    fn on_round_trip(&mut self, now: Instant, path: PathId, round_trip: Duration) {
        self.told(now).on_round_trip(now, path, round_trip);
    }

    fn peer_restarted(&mut self, now: Instant, path: PathId) {
        self.told(now).peer_restarted(now, path);
    }

    fn speak(&mut self, now: Instant, path: PathId, form: TpduForm) {
        self.told(now).speak(now, path, form);
    }

    fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.input(now, "handle_frames");
        self.seen_count.set(0);
        self.machine.handle_frames(now, datagram);
    }

    fn number_path(&mut self, now: Instant, path: PathId, ways: AckedWays) {
        self.told(now).number_path(now, path, ways);
    }

    fn use_windows(&mut self, now: Instant, path: PathId, are_taken: bool) {
        self.told(now).use_windows(now, path, are_taken);
    }

    fn finds_rate(&self, path: PathId) -> bool {
        self.machine.finds_rate(path)
    }

    fn on_sealed(&mut self, now: Instant, path: PathId, sealed: Sealed, wire: ByteCount) {
        self.told(now).on_sealed(now, path, sealed, wire);
    }

    fn on_path_ack(&mut self, now: Instant, path: PathId, ack: PathAck) {
        self.told(now).on_path_ack(now, path, ack);
    }

    fn on_arrival_map(&mut self, now: Instant, path: PathId, map: ArrivalMap<'_>) {
        self.told(now).on_arrival_map(now, path, map);
    }

    fn on_damaged(&mut self, now: Instant, path: PathId, number: u64) {
        self.told(now).on_damaged(now, path, number);
    }

    fn on_other_link(&mut self, now: Instant, path: PathId) {
        self.told(now).on_other_link(now, path);
    }

    fn on_mending(&mut self, now: Instant, path: PathId, number: u64) {
        self.told(now).on_mending(now, path, number);
    }

    fn bond(&mut self, now: Instant, home: PathId, path: PathId, facts: PathFacts) -> bool {
        self.told(now).bond(now, home, path, facts)
    }

    fn doubt(&mut self, now: Instant, path: PathId, is_doubted: bool) {
        self.told(now).doubt(now, path, is_doubted);
    }

    fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        self.told(now).take_told(now, path, told);
    }

    fn part(&mut self, now: Instant, path: PathId) {
        self.told(now).part(now, path);
    }

    fn rate_of(&self, path: PathId) -> Option<Bitrate> {
        self.machine.rate_of(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Ecn, Priority, TransmitKind};
    use core::time::Duration;

    /// A machine that answers every datagram with one octet; the test sets its deadline.
    #[derive(Default)]
    struct Echo {
        owed: u32,
        deadline: Option<Deadline>,
    }

    impl Machine for Echo {
        type Event = ();
        fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram<'_>) {
            self.owed += 1;
        }
        fn handle_deadline(&mut self, _now: Instant) {}
        fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
            self.owed = self.owed.checked_sub(1)?;
            out.push(0);
            Some(Transmit {
                path: PathId(0),
                len: 1,
                kind: TransmitKind::Control,
                priority: Priority(0),
                ecn: Ecn::NotCapable,
            })
        }
        fn poll_event(&mut self) -> Option<()> {
            None
        }
        fn next_deadline(&self) -> Option<Deadline> {
            self.deadline
        }
    }

    const LATER: Instant = Instant::from_nanos(1_000);

    fn datagram() -> Datagram<'static> {
        Datagram {
            path: PathId(0),
            octets: b"x",
            ecn: Ecn::NotCapable,
        }
    }

    fn drained(deadline: Option<Deadline>) -> Strict<Echo> {
        let mut strict = Strict::new(Echo { owed: 0, deadline });
        strict.handle_datagram(LATER, datagram());
        while strict.poll_transmit(LATER, &mut Vec::new()).is_some() {}
        assert_eq!(strict.poll_event(), None);
        strict
    }

    #[test]
    #[should_panic(expected = "before the drain ended")]
    fn input_before_the_drain_ended_panics() {
        let mut strict = Strict::new(Echo::default());
        strict.handle_datagram(LATER, datagram());
        strict.handle_datagram(LATER, datagram());
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_going_backwards_panics() {
        drained(None).handle_datagram(Instant::START, datagram());
    }

    #[test]
    #[should_panic(expected = "lies in the past")]
    fn a_deadline_in_the_past_panics() {
        drained(Some(Deadline {
            at: Instant::START,
            why: "late",
        }))
        .next_deadline();
    }

    #[test]
    #[should_panic(expected = "before its time")]
    fn a_wake_up_before_its_time_panics() {
        let at = LATER + Duration::from_secs(1);
        drained(Some(Deadline { at, why: "soon" })).handle_deadline(LATER);
    }

    #[test]
    #[should_panic(expected = "without progress")]
    fn the_same_deadline_over_and_over_panics() {
        let strict = drained(Some(Deadline {
            at: LATER,
            why: "spin",
        }));
        for _ in 0..=SAME_DEADLINE_MAX {
            strict.next_deadline();
        }
    }
}
