//! Notifications to the service manager: systemd.service(5), `Type=notify` and `WatchdogSec=`, by the
//! datagrams of `sd_notify(3)`. Where `NOTIFY_SOCKET` is not set nothing is sent.

use fulmar_net::gateway::Control;
use fulmar_net::wait::wait;
use sd_notify::{NotifyState, notify, watchdog_enabled};
use std::io;
use std::thread;

fn say(states: &[NotifyState<'_>]) {
    // A manager that does not listen is no reason to stop carrying traffic.
    if let Err(error) = notify(states) {
        tracing::debug!(event = "service_manager_deaf", %error);
    }
}

/// Tells that the ports are open, or that a reload is done.
pub(super) fn ready() {
    say(&[NotifyState::Ready]);
}

/// Tells that the configuration is being read again.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(_) => say(&[NotifyState::Reloading]),
    }
}

/// Tells that the gateway was asked to end.
pub(super) fn stopping() {
    say(&[NotifyState::Stopping]);
}

/// Tells from now on that all is well for as long as the gateway's loop answers, if the manager wants to
/// know; the manager then restarts a loop that hangs.
///
/// # Errors
/// The system gives no thread.
pub(super) fn watch(control: Control) -> io::Result<()> {
    let Some(patience) = watchdog_enabled() else {
        return Ok(());
    };
    let ask = move || {
        while wait(&[], Some(patience / 2), &mut Vec::new()).is_ok() {
            if control.status().is_some() {
                say(&[NotifyState::Watchdog]);
            }
        }
    };
    thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(ask)
        .map(drop)
}
