//! Words about files and senders: verdicts with their reports, silence, foreign keys.

use super::super::news::{OneWayNews, OneWayVerdict};
use super::super::receiver::OneWayReceiver;
use super::super::report::{OneWayReport, REPORT_SUFFIX};
use super::super::seal::OneWayRefusal;
use super::super::wire::FileTag;
use super::OneWayReceiving;
use fulmar_proto::units::Instant;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Datagrams that no key of ours opens before that is said.
const OTHER_KEY_FROM: u64 = 10;
/// Datagrams of unknown starts with old numbers before that is said. Late ones of a start that was forgotten are fewer.
const WENT_BACK_FROM: u64 = 10;

impl OneWayReceiving {
    /// Writes the report beside the files, and says how the file stands.
    pub(super) fn tell_file(
        &mut self,
        receiver: &OneWayReceiver,
        tag: FileTag,
        verdict: OneWayVerdict,
        path: Option<PathBuf>,
    ) {
        let Some(report) = receiver.report(tag) else {
            return;
        };
        self.last = Some(verdict);
        let has_report = verdict != OneWayVerdict::Refused;
        let report_path = if has_report {
            self.write_report(tag, &report)
        } else {
            None
        };
        (self.tell)(OneWayNews::File {
            verdict,
            report: Box::new(report),
            path,
            report_path,
        });
    }

    /// Writes a report, or says why it cannot be written: it is the only way back that there is.
    fn write_report(&mut self, tag: FileTag, report: &OneWayReport) -> Option<PathBuf> {
        let name = format!("{}{REPORT_SUFFIX}", report.name);
        let path = self.plan.directory.join(name);
        let beside = self.state.path_of(&format!("{tag}.report-new"));
        let text = report.to_text(&self.plan.preset).map_err(io::Error::other);
        match text.and_then(|text| replace((&path, &beside), &text)) {
            Ok(()) => Some(path),
            Err(error) => {
                (self.tell)(OneWayNews::NoReport(path, error));
                None
            }
        }
    }

    /// Says that a sender is done, and symbols are missing.
    pub(super) fn tell_missing(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        self.write(receiver, tag);
        self.work.entry(tag).or_default().is_told = true;
        self.tell_file(receiver, tag, OneWayVerdict::Missing, None);
    }

    /// Says once why datagrams are not taken that somebody meant for us.
    pub(super) fn look_for_strangers(&mut self, receiver: &OneWayReceiver) {
        let unopened = receiver.refused(OneWayRefusal::Seal);
        if unopened >= OTHER_KEY_FROM && !core::mem::replace(&mut self.is_other_key_told, true) {
            (self.tell)(OneWayNews::OtherKey(unopened));
        }
        if receiver.went_back() >= WENT_BACK_FROM
            && !core::mem::replace(&mut self.is_going_back_told, true)
        {
            (self.tell)(OneWayNews::WentBack);
        }
    }

    /// Files whose senders were not heard for long.
    pub(super) fn look_for_silence(&mut self, now: Instant, receiver: &OneWayReceiver) {
        let short = receiver.files().filter(|(_, file)| file.missing() > 0);
        let until: Vec<(FileTag, Instant)> = short
            .map(|(tag, file)| (tag, file.heard_at() + self.plan.give_up))
            .collect();
        self.silence_at = None;
        for (tag, at) in until {
            let work = self.work.entry(tag).or_default();
            if work.is_told || work.reading.is_some() {
                continue;
            }
            if at > now {
                self.silence_at = Some(self.silence_at.map_or(at, |soonest| soonest.min(at)));
            } else {
                work.is_told = true;
                self.tell_file(receiver, tag, OneWayVerdict::Silent, None);
            }
        }
    }
}

/// Replaces a small file in one step, by one that is written `beside` it.
fn replace((path, beside): (&Path, &Path), text: &str) -> io::Result<()> {
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let mut file = fs::File::create_new(beside)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        fs::rename(beside, path)
    };
    let written = write();
    if written.is_err() {
        drop(fs::remove_file(beside));
    }
    written
}
