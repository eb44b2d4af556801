//! Transports that are Python's objects: one object at each end of a flow.

use crate::part::{NewArguments, Part, PartFault, seconds, span};
use fulmar_sim::own::{Instant, Rng, TransmitKind, TransportEnd, TransportSetup, TransportTurn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::sync::Arc;

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct PythonEnd {
    part: Part,
    wake: Option<Instant>,
}

impl PythonEnd {
    pub(crate) fn new(
        maker: &Arc<Py<PyAny>>,
        setup: &TransportSetup,
        rng: &Rng,
        fault: &PartFault,
    ) -> Self {
        let seed = rng.clone().next_u64();
        let rate = setup.rate.as_bits_per_second() as f64;
        let told = (seed, setup.sends, rate, setup.packet_max.0);
        Self {
            part: Part::made_with(fault, |py| maker.call1(py, told)),
            wake: None,
        }
    }

    /// Takes what a method gave: a turn, or nothing.
    fn take(
        &mut self,
        now: Instant,
        turn: &mut TransportTurn,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let asked = self.part.ask(|py, end| {
            let given = call(py, end)?;
            if given.is_none() {
                return Ok(None);
            }
            let Ok(turn) = given.cast::<Turn>() else {
                let given = given.get_type();
                let problem =
                    format!("a method of a transport gave {given}; give None or a fulmar_lab.Turn");
                return Err(PyTypeError::new_err(problem));
            };
            Ok(Some(turn.clone().unbind()))
        });
        let Some(Some(asked)) = asked else {
            return;
        };
        let asked = asked.get();
        for (kind, packet) in &asked.packets {
            turn.send(*kind, packet.clone());
        }
        for (position, octets) in &asked.delivered {
            match position {
                Some(position) => turn.deliver_at(*position, octets.clone()),
                None => turn.deliver(octets.clone()),
            }
        }
        match asked.wake {
            WakeAsked::AsBefore => {}
            WakeAsked::Never => self.wake = None,
            WakeAsked::After(after) => self.wake = Some(now + after),
        }
    }
}

impl TransportEnd for PythonEnd {
    fn room(&self) -> usize {
        let room = self.part.ask(|py, end| {
            let room = end.call_method0(pyo3::intern!(py, "room"))?;
            room.extract()
        });
        room.unwrap_or(0)
    }

    fn write(&mut self, now: Instant, octets: &[u8], turn: &mut TransportTurn) {
        self.take(now, turn, |py, end| {
            let told = (seconds(now), PyBytes::new(py, octets));
            end.call_method1(pyo3::intern!(py, "write"), told)
        });
    }

    fn finish(&mut self, now: Instant, turn: &mut TransportTurn) {
        self.take(now, turn, |py, end| {
            end.call_method1(pyo3::intern!(py, "finish"), (seconds(now),))
        });
    }

    fn receive(&mut self, now: Instant, packet: &[u8], turn: &mut TransportTurn) {
        self.take(now, turn, |py, end| {
            let told = (seconds(now), PyBytes::new(py, packet));
            end.call_method1(pyo3::intern!(py, "receive"), told)
        });
    }

    fn wake(&mut self, now: Instant, turn: &mut TransportTurn) {
        self.wake = None;
        self.take(now, turn, |py, end| {
            end.call_method1(pyo3::intern!(py, "wake"), (seconds(now),))
        });
    }

    fn next_wake(&self) -> Option<Instant> {
        self.wake
    }
}

#[derive(Clone, Copy, Debug)]
enum WakeAsked {
    AsBefore,
    Never,
    After(core::time::Duration),
}

/// The things that an end of a transport of one's own does in one turn.
///
/// ``send``: packets, as octets for application data that are sent for the first time, or as a pair of one of ``"source"``,
/// ``"repair"``, ``"retransmission"`` and ``"control"`` with the octets. ``deliver``: octets for the application, which
/// follow those before, or pairs of a position in the stream with octets. ``wake``: the seconds from now after which ``wake()``
/// is called; ``math.inf`` for never, and without it as was asked before.
#[pyclass(frozen, module = "fulmar_lab")]
#[derive(Debug)]
pub(crate) struct Turn {
    packets: Vec<(TransmitKind, Vec<u8>)>,
    delivered: Vec<(Option<u64>, Vec<u8>)>,
    wake: WakeAsked,
}

#[derive(FromPyObject)]
enum SentPacket {
    OfKind(String, Vec<u8>),
    Source(Vec<u8>),
}

#[derive(FromPyObject)]
enum DeliveredOctets {
    At(u64, Vec<u8>),
    Next(Vec<u8>),
}

#[pymethods]
impl Turn {
    #[new]
    #[pyo3(signature = (*, send=Vec::new(), deliver=Vec::new(), wake=None))]
    fn new(
        send: Vec<SentPacket>,
        deliver: Vec<DeliveredOctets>,
        wake: Option<f64>,
    ) -> PyResult<Self> {
        let packets = send.into_iter().map(|packet| match packet {
            SentPacket::Source(octets) => Ok((TransmitKind::Source, octets)),
            SentPacket::OfKind(name, octets) => Ok((kind(&name)?, octets)),
        });
        let delivered = deliver.into_iter().map(|octets| match octets {
            DeliveredOctets::Next(octets) => (None, octets),
            DeliveredOctets::At(position, octets) => (Some(position), octets),
        });
        let wake = match wake {
            None => WakeAsked::AsBefore,
            Some(f64::INFINITY) => WakeAsked::Never,
            Some(after) => WakeAsked::After(span(after, "wake")?),
        };
        Ok(Self {
            packets: packets.collect::<PyResult<_>>()?,
            delivered: delivered.collect(),
            wake,
        })
    }

    /// For `pickle`: turns stand in the code of parts, which travels to workers and is read for its digest.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<NewArguments<'py>> {
        let bytes = |octets: &Vec<u8>| PyBytes::new(py, octets);
        let sent = self.packets.iter();
        let sent: Vec<_> = sent
            .map(|(kind, octets)| (kind.name(), bytes(octets)))
            .collect();
        let delivered = self.delivered.iter().map(|(position, octets)| {
            let octets = bytes(octets);
            match position {
                Some(position) => Ok((*position, octets).into_pyobject(py)?.into_any()),
                None => Ok(octets.into_any()),
            }
        });
        let delivered: Vec<_> = delivered.collect::<PyResult<_>>()?;
        let wake = match self.wake {
            WakeAsked::AsBefore => None,
            WakeAsked::Never => Some(f64::INFINITY),
            WakeAsked::After(after) => Some(after.as_secs_f64()),
        };
        let named = PyDict::new(py);
        named.set_item("send", sent)?;
        named.set_item("deliver", delivered)?;
        named.set_item("wake", wake)?;
        Ok((PyTuple::empty(py), named))
    }

    fn __repr__(&self) -> String {
        let (packets, delivered) = (self.packets.len(), self.delivered.len());
        format!("<fulmar_lab.Turn of {packets} packets and {delivered} deliveries>")
    }
}

fn kind(name: &str) -> PyResult<TransmitKind> {
    let found = TransmitKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let names = TransmitKind::ALL.map(TransmitKind::name).join(", ");
        PyValueError::new_err(format!(
            "there is no kind of packet `{name}`; there are: {names}"
        ))
    })
}
