//! The lab behind `fulmar sim` and the Python package: scenario files read with all that they name, sweeps made
//! in parts by any number of processes, and their results as Arrow tables and Parquet files.
//!
//! A [`Study`] is a scenario file as an experiment. [`RunTable`] and [`PointTable`] are its results as Arrow
//! tables, each column with unit and meaning. [`parts`] cuts a study into parts that are made anywhere and in any
//! order; put together they give the same octets as one process does. [`plan`] says what a link can carry, and
//! [`fitting`] which loss model is behind a recording. [`RecordedLink`] and [`replay`] make a scenario of the link
//! that a recording shows; [`drawing`] shows a scenario as a picture, and [`flow_figure`] the packets of a flow.

mod crossings;
pub mod drawing;
pub mod fitting;
pub mod flow_figure;
mod graph_columns;
pub mod measure;
mod parameter;
pub mod parts;
pub mod plan;
mod points;
mod recording;
pub mod replay;
mod runs;
mod stoppable;
mod study;
mod traced;
mod traces;
mod unread;

pub use crossings::RecordedLink;
pub use parts::{FailedRuns, KeptPart, KeptParts, PartError, SweepPart};
pub use points::PointTable;
pub use recording::RecordingTables;
pub use replay::{
    ObservedPacket, ReplayedLoss, ReplayedOutage, ReplayedSpan, ReplayedWay, UnseenLink,
};
pub use runs::RunTable;
pub use stoppable::StoppableReader;
pub use study::Study;
pub use traces::Traces;
pub use unread::UnreadRecording;
