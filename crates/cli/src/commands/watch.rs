//! Progress of an experiment, with the time that is left.

use crate::exit::Failure;
use crate::signals::Signals;
use anyhow::Context;
use core::sync::atomic::Ordering;
use fulmar_sim::experiment::{Experiment, ExperimentProgress};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Progress that a signal cancels.
pub(super) fn stoppable(signals: &Signals) -> ExperimentProgress {
    ExperimentProgress {
        cancel: signals.stop().flag(),
        ..ExperimentProgress::default()
    }
}

/// The interval of progress lines where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The whole amount of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    what: &'static str,
    count: u64,
    cost: u64,
}

impl Total {
    /// `count` of `what` that are expected to cost `cost` together, in the unit of the progress.
    pub(super) const fn of(what: &'static str, count: u64, cost: u64) -> Self {
        Self { what, count, cost }
    }

    /// The runs of experiments.
    pub(super) fn runs<'a>(experiments: impl IntoIterator<Item = &'a Experiment>) -> Self {
        let none = Self::of("runs", 0, 0);
        experiments.into_iter().fold(none, |all, one| Self {
            count: all.count.saturating_add(one.run_count() as u64),
            cost: all.cost.saturating_add(one.total_cost()),
            ..all
        })
    }
}

/// The time that is left when `done` of the cost took `elapsed` and `left` of it remains, at the pace of
/// all that was done; `None` before anything is done.
fn time_left(elapsed: Duration, done: u64, left: u64) -> Option<Duration> {
    let seconds = elapsed.as_secs_f64() * left as f64 / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Runs `work` beside a progress bar, or beside a line now and then if stderr is no terminal.
pub(super) fn watch<T: Send>(
    total: &Total,
    progress: &ExperimentProgress,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Total { what, count, cost } = *total;
    let bar = ProgressBar::with_draw_target(Some(cost), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {msg}");
    bar.set_style(style.context("the progress bar's template is malformed")?);
    // The cost of earlier work says nothing of the time that is left.
    let before = progress.cost.load(Ordering::Relaxed);
    let mut lines = (!std::io::stderr().is_terminal()).then_some(LINE_EVERY);
    let outcome = std::thread::scope(|scope| {
        let watcher = std::thread::current();
        let worker = scope.spawn(move || {
            let result = work();
            watcher.unpark();
            result
        });
        while !worker.is_finished() {
            let (done, spent) = (
                progress.done.load(Ordering::Relaxed),
                progress.cost.load(Ordering::Relaxed),
            );
            let (now, left) = (spent.saturating_sub(before), cost.saturating_sub(spent));
            let left = time_left(bar.elapsed(), now, left);
            let left = left.map(|left| format!(", {} left", HumanDuration(left)));
            let told = format!("{done}/{count} {what}{}", left.unwrap_or_default());
            bar.set_position(spent);
            if let Some(next) = lines.filter(|next| bar.elapsed() >= *next) {
                eprintln!("fulmar: {told}");
                lines = Some(next + LINE_EVERY);
            }
            bar.set_message(told);
            // Only the picture waits here; the end of the work wakes it.
            std::thread::park_timeout(Duration::from_millis(50));
        }
        worker.join()
    });
    bar.finish_and_clear();
    outcome.map_err(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_unequal_cost_are_weighed_by_it() {
        // 90 runs of 1 took 9 s; 5 of 20 remain, at the same pace 10 s.
        let left = time_left(Duration::from_secs(9), 90, 100);
        assert_eq!(left, Some(Duration::from_secs(10)));
    }

    #[test]
    fn nothing_is_said_of_the_time_before_anything_is_done() {
        assert_eq!(time_left(Duration::from_secs(3), 0, 100), None);
        assert_eq!(time_left(Duration::ZERO, 0, 0), None);
    }
}
