//! The words of a link about itself: a modem, a driver or a schedule tells its rate, its wrong bits, its outages.
//!
//! [`LinkNews`] is one message of a source, whole: what it does not name is not known. [`ToldLink`] keeps the last one, lets it
//! age, knows a planned outage beforehand, and stops to believe a source that is found wrong ([`ToldFault`]). [`ToldFacts`] is
//! the part that holds now; a session takes it in one place ([`Carried::take_told`](crate::machine::Carried::take_told)), for
//! rate, repair, length and paths. `docs/adr/0042-links-that-speak.md` has the reasons.

mod facts;
mod link;
mod news;
mod trust;

pub use facts::ToldFacts;
pub use link::{ToldLink, VALID_FOR};
pub use news::{LinkNews, PlannedOutage, TOLD_RATES};
pub use trust::{LinkEvidence, ToldFault};
