//! The promises that hold in the short form as well: the same files once more, on paths that speak it. Their pipes have a
//! seal as a session has: what is damaged is lost.

#![expect(clippy::duplicate_mod, reason = "the same tests in another form")]
#![expect(
    dead_code,
    reason = "parts of the pipes are for damage, which arrives in the long form alone"
)]

use fulmar_proto::machine::TpduForm;

const FORM: TpduForm = TpduForm::Short;

#[path = "aerotp_copies.rs"]
mod aerotp_copies;
#[path = "aerotp_faults.rs"]
mod aerotp_faults;
#[path = "aerotp_found.rs"]
mod aerotp_found;
#[path = "aerotp_hold.rs"]
mod aerotp_hold;
#[path = "aerotp_hostile.rs"]
mod aerotp_hostile;
#[path = "aerotp_idle.rs"]
mod aerotp_idle;
#[path = "aerotp_modes.rs"]
mod aerotp_modes;
#[path = "aerotp_rate.rs"]
mod aerotp_rate;
#[path = "aerotp_setup.rs"]
mod aerotp_setup;
#[path = "aerotp_sharing.rs"]
mod aerotp_sharing;
#[path = "aerotp_tail.rs"]
mod aerotp_tail;
#[path = "aerotp_thin.rs"]
mod aerotp_thin;
#[path = "bottleneck/mod.rs"]
mod bottleneck;
#[path = "pair/mod.rs"]
mod pair;
#[path = "sight.rs"]
mod sight;
#[path = "splice_datagrams.rs"]
mod splice_datagrams;
#[path = "splice_doubts.rs"]
mod splice_doubts;
#[path = "splice_graves.rs"]
mod splice_graves;
#[path = "splice_hostile.rs"]
mod splice_hostile;
#[path = "splice_orphans.rs"]
mod splice_orphans;
#[path = "splice_resume.rs"]
mod splice_resume;
#[path = "splice_streams.rs"]
mod splice_streams;
#[path = "splice_swarm.rs"]
mod splice_swarm;
#[path = "splicers/mod.rs"]
mod splicers;
