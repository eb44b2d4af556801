//! Parts of one's own: channels, sources of traffic, controllers of repair and whole transports that are written outside of this
//! workspace.
//!
//! Each is a trait, made anew for every run by a function with a name; scenarios say the name (`hop.channel`,
//! `flow.source`, `flow.controller`, `flow.transport`). Time is an argument and chance comes from the generator that the maker is given, so that equal seeds
//! give equal runs. `examples/own-parts` is a crate that has one of each; the names here are all that it needs.

pub(crate) mod transport;

pub use crate::measure::flow::FlowPunctuality;
use core::fmt;
use core::time::Duration;
pub use fulmar_channel::{ChannelLaw, FlightFate, Flips, OwnChannel, PacketFlight};
pub use fulmar_proto::repair::{
    Deliver, DeliveryGoal, DeliveryOrder, FlowShape, Odds, RepairPlan, RepairView,
};
pub use fulmar_proto::rng::Rng;
pub use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use std::sync::Arc;
pub use transport::{OwnTransport, TransmitKind, TransportEnd, TransportSetup, TransportTurn};

/// A sending application.
pub trait TrafficSource: fmt::Debug + Send {
    /// The next write. It is asked at the start of the flow, and again when the transport has been handed each write. `None` ends the stream
    /// before the scenario's `bytes` are reached.
    fn next_write(&mut self, view: SourceView) -> Option<PlannedWrite>;
}

/// A source's knowledge of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// The present time.
    pub now: Instant,
    /// Octets that were written so far.
    pub written: ByteCount,
    /// Octets of those that the transport has not accepted yet.
    pub waiting: ByteCount,
}

/// A write to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedWrite {
    /// Its time, from now.
    pub after: Duration,
    /// Its octets; 0 for a mere look at the flow then.
    pub len: ByteCount,
}

/// A choice of repair for a flow with a goal, in place of `auto`'s.
pub trait RepairController: fmt::Debug + Send {
    /// The plan to follow from now on; `put_off` is not followed. It is asked with the first message after each half second,
    /// once a round trip is known. `None` leaves the repair as it is, which is to `auto` until a plan was chosen.
    fn choose(&mut self, view: &ControllerView) -> Option<RepairPlan>;
}

/// A controller's knowledge of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerView {
    /// The present time.
    pub now: Instant,
    /// The flow's goal.
    pub goal: DeliveryGoal,
    /// The overhead that it may take, in hundredths of the data. Whatever is chosen, no more is sent.
    pub overhead_percent: u8,
    /// The path, the loss and the plan in use, as the sender sees them.
    pub seen: RepairView,
    /// The success so far, which no sender knows: for the rewards of one that learns.
    pub outcome: FlowOutcome,
}

/// The success of a flow of messages up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Messages whose deadline is over, by what became of them.
    pub fates: FlowPunctuality,
    /// Octets of the messages that were written.
    pub written: ByteCount,
    /// Octets that the sender has sent for them, with headers, repair and repetitions.
    pub sent: ByteCount,
}

macro_rules! own_part {
    ($(#[$about:meta])* $name:ident makes $part:ident) => {
        $(#[$about])*
        #[derive(Clone)]
        pub struct $name {
            name: Arc<str>,
            make: Arc<dyn Fn(&Rng) -> Box<dyn $part> + Send + Sync>,
        }

        impl $name {
            /// A part of this name that `make` makes from the generator of each run.
            pub fn new<P: $part + 'static>(
                name: &str,
                make: impl Fn(&Rng) -> P + Send + Sync + 'static,
            ) -> Self {
                Self {
                    name: name.into(),
                    make: Arc::new(move |rng| Box::new(make(rng))),
                }
            }

            /// The name under which scenarios know it.
            pub fn name(&self) -> &str {
                &self.name
            }

            pub(crate) fn for_run(&self, rng: &Rng) -> Box<dyn $part> {
                (self.make)(rng)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.name).finish()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
            }
        }
    };
}

own_part! {
    /// A source of traffic written elsewhere, by its name: it makes a [`TrafficSource`] for each flow and run.
    OwnTraffic makes TrafficSource
}
own_part! {
    /// A controller of repair written elsewhere, by its name: it makes a [`RepairController`] for each flow and run.
    OwnRepair makes RepairController
}
