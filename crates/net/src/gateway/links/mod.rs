//! Links that tell of themselves: whoever speaks for a modem, what was said last, and whether it is believed.
//!
//! A source gives messages ([`mod@line`] has their form over a socket), a [`ToldLink`](fulmar_proto::told::ToldLink) keeps the last
//! one, and each turn hands the facts that hold to the session, in one call.

mod device;
mod heard;
mod lack;
mod line;
mod modem;
mod report;
mod schedule;
mod served;
mod socket;
mod source;

pub use report::ToldLinkReport;
pub use schedule::ScheduleError;
pub(super) use served::Links;
