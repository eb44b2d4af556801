//! Channels, sources of traffic, controllers of repair and transports that are Python's objects.
//!
//! A part is a class, or anything that makes an object from a seed. Its methods are called from the simulator's threads, one
//! call for each packet, write or choice. An exception ends the run, cancels the work and is raised where it was asked for.

use crate::own_transport::PythonEnd;
use crate::part::{NewArguments, Part, PartFault, seconds, span};
use fulmar_sim::OwnParts;
use fulmar_sim::beside::score::{Achieved, ScoredGoal};
use fulmar_sim::own::{
    Bitrate, ByteCount, ChannelLaw, ControllerView, Deliver, FlightFate, Flips, FlowPunctuality,
    Instant, OwnChannel, OwnRepair, OwnTraffic, OwnTransport, PacketFlight, PlannedWrite,
    RepairController, RepairPlan, SourceView, TrafficSource,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makers of parts by name, and a text that stands for their code.
#[derive(FromPyObject)]
pub(crate) struct PythonParts {
    channels: BTreeMap<String, Py<PyAny>>,
    sources: BTreeMap<String, Py<PyAny>>,
    controllers: BTreeMap<String, Py<PyAny>>,
    transports: BTreeMap<String, Py<PyAny>>,
    pub(crate) version: String,
}

impl PythonParts {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        let kinds = [
            &self.channels,
            &self.sources,
            &self.controllers,
            &self.transports,
        ];
        kinds.iter().all(|parts| parts.is_empty())
    }

    /// The parts as the simulator takes them. Their exceptions go to `fault`.
    pub(crate) fn own(&self, py: Python<'_>, fault: &PartFault) -> OwnParts {
        let channel = |(name, maker): (&String, &Py<PyAny>)| {
            let (maker, fault) = (maker.clone_ref(py), fault.clone());
            OwnChannel::new(name, move |rng| {
                let part = Part::made(&maker, rng, &fault);
                let has_rate = part.has("rate");
                PythonChannel { part, has_rate }
            })
        };
        let source = |(name, maker): (&String, &Py<PyAny>)| {
            let (maker, fault) = (maker.clone_ref(py), fault.clone());
            OwnTraffic::new(name, move |rng| {
                PythonSource(Part::made(&maker, rng, &fault))
            })
        };
        let controller = |(name, maker): (&String, &Py<PyAny>)| {
            let (maker, fault) = (maker.clone_ref(py), fault.clone());
            OwnRepair::new(name, move |rng| {
                PythonController(Part::made(&maker, rng, &fault))
            })
        };
        let transport = |(name, maker): (&String, &Py<PyAny>)| {
            let (maker, fault) = (Arc::new(maker.clone_ref(py)), fault.clone());
            OwnTransport::new(name, move |setup, rng| {
                PythonEnd::new(&maker, setup, rng, &fault)
            })
        };
        OwnParts {
            channels: self.channels.iter().map(channel).collect(),
            sources: self.sources.iter().map(source).collect(),
            controllers: self.controllers.iter().map(controller).collect(),
            transports: self.transports.iter().map(transport).collect(),
        }
    }
}

#[derive(Debug)]
struct PythonChannel {
    part: Part,
    has_rate: bool,
}

impl ChannelLaw for PythonChannel {
    fn rate(&mut self, now: Instant) -> Option<Bitrate> {
        if !self.has_rate {
            return None;
        }
        let rate = self.part.ask(|py, law| {
            let rate = law.call_method1(pyo3::intern!(py, "rate"), (seconds(now),))?;
            let rate: Option<f64> = rate.extract()?;
            rate.map(|rate| {
                let problem = format!("rate() gave {rate} bit/s; give more than 0, or None");
                if rate > 0.0 && rate.is_finite() {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it is above 0, and a rate beyond 64 bits is the highest"
                    )]
                    Ok(Bitrate::from_bits_per_second(rate as u64))
                } else {
                    Err(PyValueError::new_err(problem))
                }
            })
            .transpose()
        });
        rate.flatten()
    }

    fn fly(&mut self, flight: PacketFlight) -> FlightFate {
        let fate = self.part.ask(|py, law| {
            let told = (seconds(flight.start), seconds(flight.end), flight.len.0);
            let fate = law.call_method1(pyo3::intern!(py, "fly"), told)?;
            if fate.is_none() {
                return Ok(FlightFate::ARRIVES);
            }
            let Ok(fate) = fate.cast::<Fate>() else {
                let given = fate.get_type();
                let problem = format!("fly() gave {given}; give None or a fulmar_lab.Fate");
                return Err(PyTypeError::new_err(problem));
            };
            Ok(fate.get().0.clone())
        });
        fate.unwrap_or(FlightFate::LOST)
    }
}

#[derive(Debug)]
struct PythonSource(Part);

impl TrafficSource for PythonSource {
    fn next_write(&mut self, view: SourceView) -> Option<PlannedWrite> {
        let write = self.0.ask(|py, source| {
            let told = (seconds(view.now), view.written.0, view.waiting.0);
            let write = source.call_method1(pyo3::intern!(py, "next_write"), told)?;
            let write: Option<(f64, u64)> = write.extract()?;
            let planned = write.map(|(after, len)| {
                Ok::<_, PyErr>(PlannedWrite {
                    after: span(after, "the time of the next write, from now,")?,
                    len: ByteCount(len),
                })
            });
            planned.transpose()
        });
        write.flatten()
    }
}

#[derive(Debug)]
struct PythonController(Part);

impl RepairController for PythonController {
    fn choose(&mut self, view: &ControllerView) -> Option<RepairPlan> {
        let chosen = self.0.ask(|py, controller| {
            let told = (RepairSeen(*view),);
            let plan = controller.call_method1(pyo3::intern!(py, "choose"), told)?;
            let plan: Option<(u8, [u8; 3])> = plan.extract()?;
            Ok(plan.map(|(ahead_eighths, times)| RepairPlan {
                ahead_eighths,
                times,
                put_off: 0,
            }))
        });
        chosen.flatten()
    }
}

/// The fate of a packet on the link, which a channel of one's own gives.
///
/// ``lost``: it never arrives. ``later``: seconds on top of the hop's delay. ``flips``: positions of inverted bits, from the
/// first bit of the packet.
#[pyclass(frozen, module = "fulmar_lab")]
#[derive(Clone, Debug)]
pub(crate) struct Fate(FlightFate);

#[pymethods]
impl Fate {
    #[new]
    #[pyo3(signature = (*, lost=false, later=0.0, flips=Vec::new()))]
    fn new(lost: bool, later: f64, flips: Vec<u32>) -> PyResult<Self> {
        Ok(Self(FlightFate {
            lost,
            later: span(later, "later")?,
            flips: Flips::from_positions(flips),
        }))
    }

    #[getter]
    fn lost(&self) -> bool {
        self.0.lost
    }

    #[getter]
    fn later(&self) -> f64 {
        self.0.later.as_secs_f64()
    }

    #[getter]
    fn flips(&self) -> Vec<u32> {
        self.0.flips.as_slice().to_vec()
    }

    /// For `pickle`: fates stand in the code of parts, which travels to workers and is read for its digest.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<NewArguments<'py>> {
        let named = PyDict::new(py);
        named.set_item("lost", self.lost())?;
        named.set_item("later", self.later())?;
        named.set_item("flips", self.flips())?;
        Ok((PyTuple::empty(py), named))
    }

    fn __repr__(&self) -> String {
        let (lost, later) = (if self.lost() { "True" } else { "False" }, self.later());
        format!("Fate(lost={lost}, later={later}, flips={:?})", self.flips())
    }
}

/// The view that a controller of one's own has of its flow. Spans in seconds, losses as shares.
#[pyclass(frozen, module = "fulmar_lab")]
#[derive(Clone, Debug)]
pub(crate) struct RepairSeen(ControllerView);

#[pymethods]
impl RepairSeen {
    /// The present time.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.0.now)
    }

    /// The time from a message's writing to its reading that the goal allows.
    #[getter]
    fn deadline(&self) -> f64 {
        self.0.goal.deadline.as_secs_f64()
    }

    /// The share of messages that may miss the deadline.
    #[getter]
    fn may_miss(&self) -> f64 {
        f64::from(self.0.goal.missed_millionths) / 1e6
    }

    /// Whether late messages are worth something.
    #[getter]
    fn late_is_worth(&self) -> bool {
        self.0.goal.deliver == Deliver::All
    }

    /// The overhead that may be sent, as a share of the data.
    #[getter]
    fn overhead(&self) -> f64 {
        f64::from(self.0.overhead_percent) / 100.0
    }

    /// The time between two messages.
    #[getter]
    fn gap(&self) -> f64 {
        self.0.seen.shape.gap.as_secs_f64()
    }

    /// The time from writing to arrival, if nothing is lost.
    #[getter]
    fn one_way(&self) -> f64 {
        self.0.seen.shape.one_way.as_secs_f64()
    }

    /// The time from a transmission to its repetition.
    #[getter]
    fn round(&self) -> f64 {
        self.0.seen.shape.round.as_secs_f64()
    }

    /// The share of first transmissions that is lost.
    #[getter]
    fn loss(&self) -> f64 {
        share(self.0.seen.loss.millionths())
    }

    /// The standard error of ``loss``.
    #[getter]
    fn loss_error(&self) -> f64 {
        share(self.0.seen.loss_error.millionths())
    }

    /// The share that is lost of what follows a loss.
    #[getter]
    fn behind_a_loss(&self) -> f64 {
        share(self.0.seen.behind_a_loss.millionths())
    }

    /// Messages so far whose deadline is over: in time, late, and not arrived. No sender knows it; it is for rewards.
    #[getter]
    fn messages(&self) -> (u64, u64, u64) {
        let fates = self.0.outcome.fates;
        (fates.in_time, fates.late, fates.lost)
    }

    /// Octets of the messages written so far.
    #[getter]
    fn written_bytes(&self) -> u64 {
        self.0.outcome.written.0
    }

    /// Octets sent for them so far, with headers, repair and repetitions.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.0.outcome.sent.0
    }

    /// The score of the messages whose deadline passed since ``before``, by which ``fulmar sim --auto-vs-fixed`` compares.
    fn score_since(&self, before: &Self) -> f64 {
        let (now, then) = (self.0.outcome, before.0.outcome);
        let fates = FlowPunctuality {
            in_time: now.fates.in_time.saturating_sub(then.fates.in_time),
            late: now.fates.late.saturating_sub(then.fates.late),
            lost: now.fates.lost.saturating_sub(then.fates.lost),
        };
        let written = now.written.0.saturating_sub(then.written.0);
        let sent = now.sent.0.saturating_sub(then.sent.0);
        let achieved = Achieved {
            fates,
            // What is sent while nothing is written is for messages of before.
            sent: if written == 0 { 0 } else { sent },
            written,
            ..Achieved::default()
        };
        // Where no message became due, none was missed.
        let may_miss = if fates.total() == 0 {
            1.0
        } else {
            self.may_miss()
        };
        achieved.score(ScoredGoal::Messages { may_miss })
    }

    /// The plan in use: repair symbols ahead for eight messages, and the transmissions in each round of repetition.
    #[getter]
    fn plan(&self) -> (u8, (u8, u8, u8)) {
        let RepairPlan {
            ahead_eighths,
            times: [first, second, later],
            ..
        } = self.0.seen.plan;
        (ahead_eighths, (first, second, later))
    }
}

fn share(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}
