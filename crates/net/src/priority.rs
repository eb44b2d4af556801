//! Real-time priority: a thread runs as soon as it wakes up, whatever else the machine does.
//!
//! On a busy machine the default policy lets a thread wait for milliseconds after its timer, which is
//! the propagation delay of a short link. Under `SCHED_FIFO` it runs at once (sched(7)).

use rustix::thread::gettid;
use std::io;
use std::process::{Command, Stdio};

/// The lowest priority but nine: above every ordinary thread, below threads that administrators raise on purpose.
const PRIORITY: &str = "10";

/// Schedules the calling thread in real time; threads and processes that it starts later are not.
/// Uses util-linux's `chrt`, since the call has no safe wrapper.
///
/// # Errors
/// There is no `chrt`, or the process may not (`CAP_SYS_NICE`); the message is that of `chrt`.
pub fn real_time() -> io::Result<()> {
    let thread = gettid().as_raw_nonzero().to_string();
    let output = Command::new("chrt")
        .args(["--reset-on-fork", "--fifo", "--pid", PRIORITY, &thread])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.trim().to_owned()))
}
