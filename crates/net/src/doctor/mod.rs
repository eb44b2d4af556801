//! The deficits of this machine for a good link, and the cure of each: `fulmar doctor`.
//!
//! Each check is a try, not a guess from a version number, wherever trying changes nothing.
//! [`machine`] looks at the kernel and the process, [`gateway()`] at what one configuration needs.

mod finding;
mod gateway;
mod limits;
mod loopback;
mod neighbours;
mod peers;
mod privileges;
mod timing;
mod tunnels;

pub use finding::{Finding, FindingVerdict};
pub use gateway::gateway;

/// The findings that hold for every use of this machine.
pub fn machine() -> Vec<Finding> {
    let mut findings = limits::kernel();
    findings.extend(loopback::socket());
    findings.push(limits::open_files());
    findings.push(timing::wake_ups());
    findings.extend(neighbours::interfaces());
    findings.extend(privileges::devices());
    findings
}
