//! `fulmar top`.

mod columns;
mod console;
mod flows;
mod keys;
mod model;
mod picture;
mod tabs;

use super::inquiry::{ask, shown};
use super::lines::Paint;
use crate::exit::{Exit, Failure, OrExit};
use crate::output::{self, StdoutReader};
use crate::signals::Signals;
use ::console::Term;
use anyhow::Context;
use console::{Console, Size};
use fulmar_net::clock::Clock;
use fulmar_net::inquiry::InquiryServer;
use fulmar_net::wait::{Interest, WakeUp, wait, waker};
use fulmar_proto::units::{Duration, Instant};
use keys::{Keyboard, Pressed, is_in_background};
use model::View;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

const EXAMPLES: &str = "\
Examples:
  fulmar top
      the gateway whose [metrics] listen is 127.0.0.1:9490, once a second, until q or Ctrl-C;
      Tab and arrows move, s sorts flows, ? helps
  fulmar top http://192.0.2.7:9490 --interval 5s
      another one, less often
  fulmar top --once --json
      one JSON record, and the end

The same picture in a browser: open the URL itself. docs/guide/metrics.md says what each figure means.
";

/// The arguments of `fulmar top`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// The gateway's HTTP server: the `listen` of its `[metrics]`, as `HOST:PORT` or HOST.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9490")]
    url: InquiryServer,
    /// Show it once and end.
    #[arg(long)]
    once: bool,
    /// Print one JSON record a look, with every figure's name and exact value.
    #[arg(long)]
    json: bool,
    /// Interval between two looks.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::connection::span)]
    interval: Duration,
    /// Show an earlier snapshot, which the gateway still keeps, by its number.
    #[arg(long, value_name = "N", requires = "once")]
    sequence: Option<u64>,
}

/// The width where it is not known.
const DEFAULT_COLUMNS: usize = 100;

/// The gateway's answer, as JSON that is an object.
fn look(args: &TopArgs) -> Result<serde_json::Value, Failure> {
    let target = match args.sequence {
        Some(sequence) => format!("/view?sequence={sequence}"),
        None => "/view".to_owned(),
    };
    ask(&args.url, &target)
}

fn view(value: serde_json::Value, args: &TopArgs) -> Result<View, Failure> {
    shown(value, &args.url)
}

/// Shows a gateway.
///
/// # Errors
/// Nothing answers, or the answer is not a gateway's.
pub(crate) fn run(args: &TopArgs) -> Result<Exit, Failure> {
    if args.once {
        let value = look(args)?;
        if args.json {
            output::record(&value)?;
        } else {
            let size = Term::stdout().size_checked();
            let width = size.map_or(DEFAULT_COLUMNS, |(_, columns)| usize::from(columns));
            let lines = picture::lines(&view(value, args)?, width, Paint::of_stdout());
            output::line(&lines.join("\n"))?;
        }
        return Ok(Exit::Done);
    }
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    // The screen is put back however it ends; no look takes long.
    let signals = Signals::catch_all(&[&waker])?;
    if args.json {
        return records(args, &wake_up, &signals);
    }
    if io::stdout().is_terminal() {
        screens(args, &wake_up, &signals)
    } else {
        pages(args, &wake_up, &signals)
    }
}

/// Waits for the next look; returns the exit, if a signal came.
fn rest(args: &TopArgs, wake_up: &WakeUp, signals: &Signals) -> Result<Option<Exit>, Failure> {
    if signals.exit().is_none() {
        let sources = [(wake_up.as_fd(), Interest::Readable)];
        wait(&sources, Some(args.interval), &mut Vec::new())
            .context("waiting")
            .or_exit(Exit::Device)?;
        wake_up.clear();
    }
    Ok(signals.exit())
}

fn records(args: &TopArgs, wake_up: &WakeUp, signals: &Signals) -> Result<Exit, Failure> {
    loop {
        if output::watched_record(&look(args)?)? == StdoutReader::Gone {
            return Ok(Exit::Done);
        }
        if let Some(exit) = rest(args, wake_up, signals)? {
            return Ok(exit);
        }
    }
}

/// One picture below the other, for a file or a pipe.
fn pages(args: &TopArgs, wake_up: &WakeUp, signals: &Signals) -> Result<Exit, Failure> {
    loop {
        let view = view(look(args)?, args)?;
        let lines = picture::lines(&view, DEFAULT_COLUMNS, Paint::of_stdout());
        if output::watched_text(&(lines.join("\n") + "\n"))? == StdoutReader::Gone {
            return Ok(Exit::Done);
        }
        if let Some(exit) = rest(args, wake_up, signals)? {
            return Ok(exit);
        }
    }
}

/// The terminal's other screen (xterm's control sequences, `ctlseqs`): what was there comes back when
/// this is dropped.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        let screen = Self;
        Self::write("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    fn write(text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    fn show(lines: &[String]) -> io::Result<()> {
        let mut text = "\x1b[H".to_owned();
        for (n, line) in lines.iter().enumerate() {
            if n > 0 {
                text.push_str("\r\n");
            }
            text.push_str(line);
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        Self::write(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody left to tell.
        drop(Self::write("\x1b[?25h\x1b[?1049l"));
    }
}

/// The reason for which a screen is drawn again.
enum Again {
    /// Time for another look at the gateway.
    Look,
    /// The user pressed a key.
    Pressed,
    End(Exit),
}

/// Waits for the next look at `next`, a key, or a signal.
fn rest_at_screen(
    (clock, next): (&Clock, Instant),
    (wake_up, signals): (&WakeUp, &Signals),
    mut keyboard: Option<&mut Keyboard>,
    shown: &mut Console,
) -> Result<Again, Failure> {
    let mut ready = Vec::new();
    if signals.exit().is_none() {
        let left = next.saturating_since(clock.now());
        let mut sources = vec![(wake_up.as_fd(), Interest::Readable)];
        let keyboard = keyboard.as_deref();
        sources.extend(
            keyboard
                .and_then(Keyboard::readable)
                .map(|keys| (keys, Interest::Readable)),
        );
        wait(&sources, Some(left), &mut ready)
            .context("waiting")
            .or_exit(Exit::Device)?;
        wake_up.clear();
    }
    if let Some(exit) = signals.exit() {
        return Ok(Again::End(exit));
    }
    if ready.get(1).is_some_and(|keys| keys.readable)
        && let Some(keyboard) = &mut keyboard
    {
        for pressed in keyboard.pressed() {
            if pressed == Pressed::Quit {
                return Ok(Again::End(Exit::Done));
            }
            shown.press(pressed);
        }
    }
    Ok(if clock.now() >= next {
        Again::Look
    } else {
        Again::Pressed
    })
}

fn screens(args: &TopArgs, wake_up: &WakeUp, signals: &Signals) -> Result<Exit, Failure> {
    // Nobody needs a screen to read that nothing answers.
    let mut latest = view(look(args)?, args)?;
    let mut problem = None;
    let on_screen = |error: io::Error| Failure {
        exit: Exit::Device,
        cause: anyhow::Error::new(error).context("writing to the terminal"),
    };
    let clock = Clock::start();
    let mut next = clock.now() + args.interval;
    let mut console = Console::default();
    console.look(&latest);
    // In the background, where the shell's `&` puts it, the terminal is left alone until the shell gives it back (`fg`).
    let mut front = None;
    let ended = loop {
        let is_shown = !is_in_background(io::stdout());
        if is_shown && front.is_none() {
            let keyboard = Keyboard::take();
            front = Some((Screen::enter().map_err(on_screen)?, keyboard));
        }
        let (rows, columns) = Term::stdout().size();
        let size = Size {
            columns: usize::from(columns),
            rows: usize::from(rows),
        };
        let lines = console.screen(&latest, problem.as_deref(), size, Paint::of_stdout());
        if is_shown && let Err(error) = Screen::show(&lines) {
            break Err(on_screen(error));
        }
        let who = (wake_up, signals);
        let keyboard = front.as_mut().map(|(_, keyboard)| keyboard);
        match rest_at_screen((&clock, next), who, keyboard, &mut console) {
            Ok(Again::Look) => {}
            Ok(Again::Pressed) => continue,
            Ok(Again::End(exit)) => break Ok(exit),
            Err(failure) => break Err(failure),
        }
        match look(args).and_then(|value| view(value, args)) {
            Ok(view) => {
                console.look(&view);
                latest = view;
                problem = None;
            }
            Err(failure) => problem = Some(failure.line()),
        }
        next = clock.now() + args.interval;
    };
    // The screen first, then the keyboard.
    drop(front);
    ended
}
