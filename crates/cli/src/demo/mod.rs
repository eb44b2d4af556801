//! The demonstration: a real file over a real (emulated) bad link, in every mode, over TCP and over plain UDP.
//!
//! [`plan`] lists the runs, [`link`] is the emulator in a thread, [`aerotp`], [`tcp`] and [`plain`] move
//! the file, [`timeline`] measures, [`row`] is one line of the result.

pub(crate) mod aerotp;
pub(crate) mod link;
pub(crate) mod plain;
pub(crate) mod plan;
pub(crate) mod row;
pub(crate) mod tcp;
pub(crate) mod timeline;
