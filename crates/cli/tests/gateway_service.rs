//! The notifications of a gateway to a service manager: `Type=notify` and `WatchdogSec=` of
//! systemd.service(5).
//!
//! Method: the test is the manager, with a datagram socket of its own.

use crate::processes::{Running, fulmar};
use rustix::process::Signal;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The longest wait here, by far; it turns silence into a failure.
const PATIENCE: Duration = Duration::from_secs(30);

struct Manager(UnixDatagram);

impl Manager {
    /// Waits for a message that has `line`, and returns the messages before it.
    fn hears(&self, line: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            let mut octets = [0; 4096];
            let len = self.0.recv(&mut octets).unwrap_or_else(|error| {
                panic!("no {line} ({error}), only {before:?}");
            });
            let text = String::from_utf8_lossy(&octets[..len]).into_owned();
            if text.lines().any(|known| known == line) {
                return before;
            }
            before.push(text);
        }
    }
}

#[test]
fn the_manager_hears_when_it_is_ready_alive_reloading_and_stopping() {
    let place = tempfile::tempdir().expect("room");
    let socket = place.path().join("notify");
    let manager = Manager(UnixDatagram::bind(&socket).expect("a socket"));
    manager
        .0
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout");
    let file = place.path().join("here.toml");
    let text = format!(
        "[gateway]\nname = \"here\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{}\"\n\
         [security]\nkind = \"none\"\n[[peer]]\nname = \"other\"\nrate = \"10mbit\"\n\
         [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
        place.path().display()
    );
    fs::write(&file, text).expect("room");
    let mut command = fulmar(&format!("gateway --json -c {}", file.display()));
    command
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "200000");
    let mut gateway = Running::start(command);

    assert_eq!(manager.hears("READY=1"), Vec::<String>::new());
    manager.hears("WATCHDOG=1");
    manager.hears("WATCHDOG=1");

    gateway.signal(Signal::HUP);
    manager.hears("RELOADING=1");
    manager.hears("READY=1");

    // A file that is wrong is refused, and the gateway goes on: the reload is over all the same.
    fs::write(&file, "nonsense").expect("room");
    gateway.signal(Signal::HUP);
    manager.hears("RELOADING=1");
    manager.hears("READY=1");
    manager.hears("WATCHDOG=1");

    gateway.signal(Signal::TERM);
    manager.hears("STOPPING=1");
    assert_eq!(gateway.code(), Some(143));
}
