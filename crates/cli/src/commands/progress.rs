//! A progress bar on stderr, where a person is looking: on terminals only.

use fulmar_net::transfer::{ReceiveObserver, ReceiveReport, SendObserver};
use fulmar_proto::units::Instant;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::ops::Range;

const STYLE: &str = "{prefix} {wide_bar} {bytes}/{total_bytes} {rate} {eta_precise}";
const STYLE_UNKNOWN: &str = "{prefix} {spinner} {bytes} {rate}";

/// The speed in the unit of the link's own rate.
fn rate(state: &ProgressState, out: &mut dyn Write) {
    // What cannot be shown is shown a tick later.
    let _ = write!(out, "{:.2} Mbit/s", state.per_sec() * 8.0 / 1e6);
}

/// One bar.
#[derive(Debug)]
pub(crate) struct TransferBar {
    bar: ProgressBar,
    quiet: bool,
}

impl TransferBar {
    /// A bar for one transfer; `quiet` shows nothing, and neither does a stderr that is no terminal.
    pub(crate) fn new(name: &str, size: Option<u64>, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(size, target);
        let style = if size.is_some() { STYLE } else { STYLE_UNKNOWN };
        let style = ProgressStyle::with_template(style).expect("the templates are constant");
        let style = style.with_key("rate", rate);
        bar.set_style(style);
        bar.set_prefix(name.to_owned());
        Self { bar, quiet }
    }

    /// A place for bars that come later.
    pub(crate) fn none(quiet: bool) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            quiet,
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line without breaking the bar.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("fulmar: {text}"));
        }
    }
}

impl SendObserver for TransferBar {
    fn resumed(&mut self, offset: u64) {
        self.say(&format!("continuing at {offset} bytes"));
        self.bar.set_position(offset);
        self.bar.reset_eta();
    }

    fn confirmed(&mut self, _now: Instant, octets: u64) {
        self.bar.set_position(octets);
    }

    fn reconnecting(&mut self) {
        self.say("the receiver is gone or was restarted; connecting again");
    }
}

impl ReceiveObserver for TransferBar {
    fn started(&mut self, name: &str, size: Option<u64>, resumed_at: u64) {
        *self = Self::new(name, size, self.quiet);
        if resumed_at > 0 {
            self.say(&format!("{name}: continuing at {resumed_at} bytes"));
        }
        self.bar.set_position(resumed_at);
        self.bar.reset_eta();
    }

    fn delivered(&mut self, _now: Instant, range: Range<u64>) {
        self.bar.inc(range.end - range.start);
    }

    fn finished(&mut self, _report: &ReceiveReport) {
        self.clear();
    }
}
