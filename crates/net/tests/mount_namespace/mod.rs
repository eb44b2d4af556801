//! This program once more, in a mount namespace of its own with a small disk.
//!
//! Method: a test starts itself as a child under `unshare`. The child gets its words on its standard input,
//! and mounts a `tmpfs`. Without the right to mount, the test says so and passes; with `CI=true` it fails.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const UNSHARE: [&str; 3] = ["--mount", "--map-root-user", "--"];

/// Whether a mount namespace, and a `tmpfs` in it, can be had here.
fn can_mount(directory: &Path) -> bool {
    let works = Command::new("unshare")
        .args(UNSHARE)
        .args(["mount", "-t", "tmpfs", "tmpfs"])
        .arg(directory)
        .output()
        .is_ok_and(|output| output.status.success());
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        works || !ci,
        "needs unshare and the right to mount, and CI=true forbids to skip"
    );
    if !works {
        // Not eprintln!, which the test harness keeps to itself.
        let said = "skipped: needs unshare and the right to mount";
        drop(writeln!(std::io::stderr(), "{said}"));
    }
    works
}

/// Runs the ignored test `child` of this program in a namespace, tells it `words`, and returns its output; `None`
/// if no namespace can be had. `directory` is where it will mount.
pub(crate) fn run(child: &str, words: &str, directory: &Path) -> Option<String> {
    if !can_mount(directory) {
        return None;
    }
    let mut started = Command::new("unshare")
        .args(UNSHARE)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(started.stdin.take().unwrap(), "{words}").unwrap();
    let output = started.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    Some(said)
}

/// In the child: its words.
pub(crate) fn words() -> String {
    let mut words = String::new();
    std::io::stdin().read_line(&mut words).unwrap();
    words.trim_end().to_owned()
}

/// In the child: puts a disk of `size`, as `tmpfs` writes it, at `directory`.
pub(crate) fn mount(directory: &Path, size: &str) {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(directory)
        .status();
    assert!(mounted.unwrap().success());
}
