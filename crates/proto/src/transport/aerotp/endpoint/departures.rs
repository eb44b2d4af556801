//! The next datagram to leave: resets, then control, then data as the paths' budgets allow.

use super::lengths::shape_of;
use super::{AerotpEndpoint, Bond, Leaving, Orphan};
use crate::machine::{Ecn, PathId, Priority, TpduForm, Transmit, TransmitKind};
use crate::transport::aerotp::schedule::PathSchedule;
use crate::transport::aerotp::sender::PathTaken;
use crate::units::{ByteCount, Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::short::{self, Named, ShortFeedback};
use crate::wire::aerotp::{
    EcnField, FecStrength, Feedback, Handshake, Header, HoldTime, Outgoing, ReceiverWord, encode,
};

/// Begins a TPDU in the long form on a path that speaks `form`.
fn begin_long(form: TpduForm, out: &mut Vec<u8>) {
    if form == TpduForm::Short {
        short::begin_long(out);
    }
}

fn write_bare(header: Header, crc: bool, out: &mut Vec<u8>) {
    encode(
        &Outgoing {
            header,
            crc,
            fec_words: FecStrength::NONE,
            block: None,
            body: &[],
        },
        out,
    );
}

/// Writes a MACK that settles everything before `end`, including the end of data.
fn write_end(asks: Header, end: TpduSeq, named: Option<Named>, form: TpduForm, out: &mut Vec<u8>) {
    let receiver = ReceiverWord {
        window: u16::MAX,
        hold: HoldTime::from_duration(Duration::ZERO),
    };
    if let (TpduForm::Short, Some(named)) = (form, named) {
        let feedback = ShortFeedback {
            named,
            ecn: EcnField::NONE,
            echo: asks.timestamp,
            frame_bytes_max: short::MACK_BYTES,
        };
        feedback.cumulative(Handshake::Afin, end, receiver.into(), [], out);
        return;
    }
    begin_long(form, out);
    let feedback = Feedback {
        source: asks.destination,
        destination: asks.source,
        mode: asks.mode,
        ecn: EcnField::NONE,
        echo: asks.timestamp,
        crc: form == TpduForm::Long,
        fec_words: FecStrength::NONE,
    };
    feedback.cumulative(Handshake::Afin, end, receiver, [], out);
}

impl AerotpEndpoint {
    fn transmit(
        &self,
        path: PathId,
        len: usize,
        (kind, hears_marks): (TransmitKind, bool),
        priority: Priority,
    ) -> Transmit {
        let ecn = if self.config.ecn && hears_marks {
            Ecn::Capable
        } else {
            Ecn::NotCapable
        };
        Transmit {
            path,
            len,
            kind,
            priority,
            ecn,
        }
    }

    pub(super) fn poll_orphan(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (path, orphan, form) = loop {
            let (path, orphan) = self.orphans.pop_front()?;
            let form = self.form_of(path);
            // The long form has no word for an unknown name.
            let has_form = form == TpduForm::Short || !matches!(orphan, Orphan::UnknownName(_));
            if has_form && !self.is_held(path) {
                break (path, orphan, form);
            }
        };
        let start = out.len();
        match orphan {
            Orphan::Reset(header) => {
                let timestamp = now.as_wrapping_micros();
                begin_long(form, out);
                write_bare(
                    Header {
                        timestamp,
                        ..header
                    },
                    form == TpduForm::Long,
                    out,
                );
            }
            Orphan::Bare(header) => {
                begin_long(form, out);
                write_bare(header, false, out);
            }
            Orphan::Ended { asks, end, named } => write_end(asks, end, named, form, out),
            Orphan::UnknownName(named) => short::write_unknown_name(named, out),
        }
        Some(self.transmit(
            path,
            out.len() - start,
            (TransmitKind::Control, !self.finds_rate(path)),
            Priority(u8::MAX),
        ))
    }

    /// The octets of data that wait and may leave on `path`.
    pub(super) fn waiting_octets(&self, path: PathId) -> ByteCount {
        let home = self.paths.get(&self.home_of(path));
        home.filter(|_| !self.last_may_change_path)
            .map_or(ByteCount::ZERO, PathSchedule::waiting_octets)
    }

    /// Tells the path, if it is still there, of a datagram that left, once the queues are up to date. Returns whether marks
    /// on it are heard of.
    fn on_left(&mut self, now: Instant, path: PathId, octets: usize, control: bool) -> bool {
        let waiting = self.waiting_octets(path);
        let home = self.home_of(path);
        // Reports come to the home, whichever of its paths the data took.
        if let Some(home) = self
            .paths
            .get_mut(&home)
            .filter(|_| !control && home != path)
        {
            home.on_stamped(now);
        }
        self.paths.get_mut(&path).is_none_or(|schedule| {
            schedule.on_left(now, octets, (control, waiting));
            schedule.control_of_rate.hears_marks()
        })
    }

    /// The next control TPDU. Control goes ahead of data within the same budget: it is small, and
    /// everything waits for it.
    pub(super) fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let mut from = PathId(0);
        while let Some(path) = self.control_paths.range(from..).next().copied() {
            let leaving = self.control_path(path);
            let schedule = self.paths.get(&leaving);
            let allowed = schedule.filter(|schedule| schedule.allows_control(now));
            let answer = allowed.map(|p| (p.report(now), p.answer_bytes_max()));
            let turn = answer.and_then(|answer| {
                let schedule = self.paths.get_mut(&path)?;
                Some((schedule.control.pop_front()?, answer))
            });
            let Some((id, (mut report, bytes_max))) = turn else {
                if self.paths.get(&path).is_none_or(|p| p.control.is_empty()) {
                    self.control_paths.remove(&path);
                }
                from = PathId(path.0.checked_add(1)?);
                continue;
            };
            let Some(entry) = self.connections.get_mut(&id) else {
                continue;
            };
            entry.queued_control = false;
            let start = out.len();
            let code = self.intake.code();
            let may_report = report.is_some();
            let connection = &mut entry.connection;
            let written = connection.write_control(now, code, (&mut report, bytes_max), out);
            let len = out.len() - start;
            // The octets are counted before the connection may be forgotten, and its path with it.
            if written.is_some() {
                let schedule = self.path(leaving);
                schedule.on_sent(now, len);
                // Where the rate is found, a request, which takes no report, does not put it off.
                let reported = report.is_none() || !schedule.control_of_rate.is_found();
                if may_report && reported {
                    schedule.reported_at = Some(now);
                }
            }
            self.settle(now, id);
            if let Some(is_answer) = written {
                let hears_marks = self.on_left(now, leaving, len, true);
                if !is_answer {
                    self.path(leaving).on_stamped(now);
                    if let Some(home) = self.paths.get_mut(&path) {
                        home.on_stamped(now);
                    }
                }
                let kind = TransmitKind::Control;
                return Some(self.transmit(leaving, len, (kind, hears_marks), Priority(u8::MAX)));
            }
        }
        None
    }

    pub(super) fn poll_data(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let mut from = PathId(0);
        while let Some(path) = self.sending_paths.range(from..).next().copied() {
            let Some(turn) = self.next_leaving(now, path) else {
                let is_empty = self.paths.get(&path).is_none_or(PathSchedule::is_empty);
                if is_empty {
                    self.on_nothing_waits(path);
                }
                from = PathId(path.0.checked_add(1)?);
                continue;
            };
            let Leaving {
                id,
                is_spare: spare,
                ..
            } = turn;
            let Some(schedule) = self.paths.get_mut(&turn.path) else {
                continue;
            };
            let Some(entry) = self.connections.get_mut(&id) else {
                continue;
            };
            let (priority, share) = (entry.connection.priority(), entry.connection.share());
            let start = out.len();
            let shape = shape_of(&entry.connection, schedule.pacer.wire_bytes(0));
            if entry.connection.keeps_outcomes() {
                schedule.lengths.expect(shape);
            }
            let next = schedule.lengths.next();
            let payload = next.map_or(usize::MAX, |octets| octets.saturating_sub(shape.headers));
            let (code, scratch) = (self.intake.code(), &mut self.scratch);
            entry.connection.leave_on(turn.taken);
            let may_change_path = turn.taken.has_other && entry.connection.is_thin();
            let kind = if spare {
                entry.queued_spare = false;
                entry.connection.write_spare(now, code, scratch, out)
            } else {
                entry.queued_data = false;
                entry
                    .connection
                    .write_data(now, payload, code, scratch, out)
            };
            let len = out.len() - start;
            if kind.is_some() {
                self.last_tpdu = entry.connection.last_source().map(|seq| (id, seq));
                let schedule = self.path(turn.path);
                schedule.on_sent(now, len);
                if kind == Some(TransmitKind::Source) {
                    schedule.lengths.on_left();
                }
                if !spare {
                    self.path(path).charge(priority, share, len);
                }
            }
            self.settle(now, id);
            if let Some(kind) = kind {
                self.last_may_change_path = may_change_path;
                let hears_marks = self.on_left(now, turn.path, len, false);
                return Some(self.transmit(turn.path, len, (kind, hears_marks), priority));
            }
        }
        None
    }

    /// The connection whose turn it is to send to the peer at `home`, and the path on which it does.
    fn next_leaving(&mut self, now: Instant, home: PathId) -> Option<Leaving> {
        if self.is_bonded(home) {
            return self.next_bonded(now, home);
        }
        let schedule = self.paths.get_mut(&home)?;
        schedule.update_rate(now);
        if !schedule.allows(now) {
            return None;
        }
        let data = schedule.next().map(|id| (id, false));
        let turn = data.or_else(|| schedule.next_spare().map(|id| (id, true)));
        turn.map(|(id, is_spare)| Leaving {
            id,
            is_spare,
            path: home,
            taken: PathTaken::ONLY,
        })
    }

    /// Notes that nothing waits to be sent to the peer at `home`: time earns no credit on its paths.
    fn on_nothing_waits(&mut self, home: PathId) {
        self.sending_paths.remove(&home);
        let bond = self.bonds.get(&home);
        let alone = bond.is_none().then_some(home);
        let bonded = bond.into_iter().flat_map(Bond::paths);
        for path in alone.into_iter().chain(bonded) {
            if let Some(schedule) = self.paths.get_mut(&path) {
                schedule.pacer.on_idle();
            }
        }
    }
}
