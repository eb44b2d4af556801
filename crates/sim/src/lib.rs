//! Driver 1: virtual time. Worlds, scenarios, experiments and measures.
//!
//! A scenario says which hops, channels, flows and sweeps ([`scenario`]); an experiment runs each point
//! with several seeds ([`experiment`]); a world is one run ([`world`]): nodes and hops, the same protocol
//! machines that run over sockets, and applications whose every octet is verified ([`measure`]). Closed
//! forms for repetition stand in [`theory`]. Results are records with parameters, seed and confidence
//! intervals ([`report`]).
//!
//! # Promises
//! - The same scenario and seed give the same octets of output, on every platform, for every
//!   number of worker threads and every order in which nodes are created.
//! - A machine is told nothing that a real driver could not tell it. Damage is inverted bits in real
//!   octets.
//! - No clock, socket, file or entropy; the threads of an experiment share nothing but a counter.

pub mod app;
pub mod event_queue;
pub mod experiment;
mod flow;
mod guard;
pub mod measure;
mod network;
mod node;
pub mod pattern;
mod pool;
pub mod report;
pub mod scenario;
mod stack;
pub mod swarm;
mod tap;
pub mod theory;
mod topology;
pub mod world;

pub use stack::RecoveredTpdus;
pub use tap::{Observed, Observers, Output};
