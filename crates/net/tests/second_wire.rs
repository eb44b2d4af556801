//! The promises of sessions that hold in wire 2 as well: the same files once more, between ends that speak it.

#![expect(clippy::duplicate_mod, reason = "the same tests in another wire")]

use fulmar_net::session::Wire;

const WIRE: Wire = Wire::Two;

#[path = "session.rs"]
mod session;
#[path = "session_damage.rs"]
mod session_damage;
#[path = "session_early.rs"]
mod session_early;
#[path = "session_keys.rs"]
mod session_keys;
#[path = "session_links.rs"]
mod session_links;
#[path = "session_mtu.rs"]
mod session_mtu;
#[path = "session_notices.rs"]
mod session_notices;
#[path = "session_pair/mod.rs"]
mod session_pair;
#[path = "session_reports.rs"]
mod session_reports;
