//! Progress of an experiment, with the time that is left.

use crate::exit::Failure;
use crate::signals::Signals;
use anyhow::Context;
use core::sync::atomic::Ordering;
use fulmar_sim::experiment::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Progress that a signal cancels.
pub(super) fn stoppable(signals: &Signals) -> Progress {
    Progress {
        cancel: signals.stop().flag(),
        ..Progress::default()
    }
}

/// How often progress is told where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Runs `work` beside a progress bar, or beside a line now and then if stderr is no terminal.
pub(super) fn watch<T: Send>(
    total: u64,
    what: &str,
    progress: &Progress,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = format!("{{bar:30}} {{pos}}/{{len}} {what}, {{eta}} left");
    let style = ProgressStyle::with_template(&template);
    bar.set_style(style.context("the progress bar's template is malformed")?);
    // What was there before says nothing of the time that is left.
    bar.set_position(progress.done.load(Ordering::Relaxed) as u64);
    bar.reset_eta();
    let mut lines = (!std::io::stderr().is_terminal()).then_some(LINE_EVERY);
    let outcome = std::thread::scope(|scope| {
        let watcher = std::thread::current();
        let worker = scope.spawn(move || {
            let result = work();
            watcher.unpark();
            result
        });
        while !worker.is_finished() {
            let done = progress.done.load(Ordering::Relaxed) as u64;
            bar.set_position(done);
            if let Some(next) = lines.filter(|next| bar.elapsed() >= *next) {
                let left = HumanDuration(bar.eta());
                eprintln!("fulmar: {done} of {total} {what}, {left} left");
                lines = Some(next + LINE_EVERY);
            }
            // Only the picture waits here; the end of the work wakes it.
            std::thread::park_timeout(Duration::from_millis(50));
        }
        worker.join()
    });
    bar.finish_and_clear();
    outcome.map_err(|panic| std::panic::resume_unwind(panic))
}
