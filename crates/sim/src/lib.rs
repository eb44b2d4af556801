//! A simulator of transport protocols and link layers over lossy links, in virtual time: it runs the
//! machines of `fulmar-proto` and `fulmar-baseline` as they are, and gives each result with its seed and a
//! confidence interval.
//!
//! A scenario says which hops, channels, flows and sweeps ([`scenario`]); an experiment runs each point
//! with several seeds ([`experiment`]); a world is one run ([`world`]): nodes and hops, the same protocol
//! machines that run over sockets, and applications whose every octet is verified ([`measure`]). Closed
//! forms for repetition stand in [`theory`], and one queue that senders share, without their transports, in [`bottleneck`]. Results are records with parameters, seed and confidence
//! intervals ([`report`]).
//!
//! ```
//! use fulmar_sim::{Document, Experiment, ExperimentProgress, WorldOptions, points};
//! let text = "[run]\nduration = '10s'\n[[hop]]\nrate = '8mbit'\nloss = '5%'\n\
//!     [flow]\ntransport = 'aerotp'\ntraffic = 'bulk'\nbytes = '100kB'\n";
//! let points = points(&Document::parse("lossy.toml", text)?)?;
//! let (scenario, options) = ("lossy.toml".to_owned(), WorldOptions::default());
//! let experiment = Experiment { scenario, points, options };
//! let results = experiment.run(1, &ExperimentProgress::default())?;
//! assert!(results[0].runs[0].metrics.completed, "every octet came, verified");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//! - The same scenario and seed give the same octets of output, on every platform, for every
//!   number of worker threads and every order in which nodes are created.
//! - A machine is told nothing that a real driver could not tell it. Damage is inverted bits in real
//!   octets.
//! - No clock, socket, file or entropy; the threads of an experiment share nothing but a counter.

pub mod app;
pub mod beside;
pub mod bottleneck;
pub mod event_queue;
pub mod experiment;
mod flow;
pub mod flow_packets;
mod guard;
pub mod measure;
mod network;
mod node;
pub mod own;
pub mod pattern;
mod pool;
pub mod recording;
pub mod report;
pub mod scenario;
mod stack;
pub mod swarm;
mod tap;
pub mod theory;
mod topology;
pub mod world;

pub use beside::{AutoComparison, AutoScenario, FixedSetting};
pub use experiment::{Experiment, ExperimentError, ExperimentProgress, PointResult};
pub use flow_packets::{FlowPackets, FlowWindow};
pub use recording::RunRecording;
pub use report::aggregate::AggregateRecord;
pub use report::record::RunRecord;
pub use scenario::{Document, OwnParts, PointPlan, SettingsError, SweepPoint, points};
pub use stack::RecoveredTpdus;
pub use tap::{Observed, Observers, Output};
pub use world::{World, WorldOptions};
