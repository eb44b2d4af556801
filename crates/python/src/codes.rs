//! The codes of the protocols, for Python: blocks, sliding windows, and parity inside a packet.
//!
//! Octets go in and out as `bytes`. What a code refuses is a `FecError`, whose message says what it has and what it
//! needs; so is an integer beyond those that a code has. All of it is computed without the interpreter's lock.

use core::num::NonZeroU8;
use fulmar_proto::fec::block::{BlockDecoder, encode_repair};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::fec::window::{
    Density, RejectedSymbol, RepairSpan, WindowDecoder, WindowEncoder, WindowLimits,
};
use fulmar_proto::units::FecStrength;
use pyo3::create_exception;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

create_exception!(
    fulmar_lab.fec,
    FecError,
    PyValueError,
    "Octets that cannot be encoded, decoded or corrected; the message says what is missing."
);

/// Sources that were rebuilt: ordinal and payload.
type Payloads<'py> = Vec<(u64, Bound<'py, PyBytes>)>;

fn refused(reason: impl Display) -> PyErr {
    FecError::new_err(reason.to_string())
}

/// An integer of Python's as `read` takes it; one beyond its type is refused, with the bounds behind it.
fn within<T>(
    number: &Bound<'_, PyAny>,
    read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    bounds: &str,
) -> PyResult<T> {
    read(number).map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(number.py()) {
            refused(format!("{number}{bounds}"))
        } else {
            error
        }
    })
}

fn octet(number: &Bound<'_, PyAny>, bounds: &str) -> PyResult<u8> {
    within(number, |number| number.extract(), bounds)
}

fn ordinal(number: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bounds = " as an ordinal; they count from 0 and have 64 bits";
    within(number, |number| number.extract(), bounds)
}

fn key(number: &Bound<'_, PyAny>) -> PyResult<u16> {
    within(
        number,
        |number| number.extract(),
        " as a key; it has 0 to 65535",
    )
}

/// The repair symbols with indices 0 to `repairs` - 1 of a block of `sources`.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn encode_block<'py>(
    py: Python<'py>,
    sources: Vec<PyBackedBytes>,
    repairs: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let repairs = octet(
        repairs,
        " repair symbols; a block has 256 units, sources among them",
    )?;
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let symbols = py.detach(|| {
        let symbols = (0..repairs).map(|index| {
            let mut symbol = Vec::new();
            encode_repair(&sources, index, &mut symbol).map(|()| symbol)
        });
        symbols.collect::<Result<Vec<_>, _>>()
    });
    let symbols = symbols.map_err(refused)?;
    Ok(symbols
        .iter()
        .map(|symbol| PyBytes::new(py, symbol))
        .collect())
}

/// All sources of a block of `k`, out of any k of its units. A unit has its number in the block: sources below `k`,
/// repair symbols from `k` on.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn decode_block<'py>(
    py: Python<'py>,
    k: &Bound<'py, PyAny>,
    units: Vec<(Bound<'py, PyAny>, PyBackedBytes)>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let bounds = " sources; a block has 1 to 255 sources";
    let k = NonZeroU8::new(octet(k, bounds)?).ok_or_else(|| refused(format!("0{bounds}")))?;
    let units = units.iter().map(|(number, payload)| {
        let number = octet(
            number,
            " as the number of a unit; a block has units 0 to 255",
        )?;
        Ok((number, payload.as_ref()))
    });
    let units: Vec<(u8, &[u8])> = units.collect::<PyResult<_>>()?;
    let sources = py.detach(|| decoded(k, units))?;
    Ok(sources
        .iter()
        .map(|source| PyBytes::new(py, source))
        .collect())
}

/// All sources of a block of `sources`, in their order.
fn decoded(sources: NonZeroU8, units: Vec<(u8, &[u8])>) -> PyResult<Vec<Vec<u8>>> {
    let k = sources.get();
    let mut decoder = BlockDecoder::new(sources);
    // Sources first: they need no decoding, and say how long a symbol is at least.
    let (plain, coded): (Vec<_>, Vec<_>) = units.into_iter().partition(|&(number, _)| number < k);
    for (number, payload) in plain {
        decoder.add_source(number, payload).map_err(refused)?;
    }
    for (number, symbol) in coded {
        if decoder.needed() > 0 {
            decoder.add_repair(number - k, symbol).map_err(refused)?;
        }
    }
    let mut rebuilt = decoder.decode().map_err(refused)?.into_iter();
    let all = (0..k).map(|number| match decoder.source(number) {
        Some(payload) => Some(payload.to_vec()),
        None => rebuilt.next().map(|(_, payload)| payload),
    });
    all.collect::<Option<_>>()
        .ok_or_else(|| refused("a source is missing though the block is complete"))
}

/// `payload` with the parity of `words` behind it.
#[pyfunction]
pub(crate) fn append_parity<'py>(
    py: Python<'py>,
    payload: &[u8],
    words: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let words = strength(words)?;
    let packet = py.detach(|| {
        let mut packet = payload.to_vec();
        PacketCode::new().append_parity(&mut packet, 0, words);
        packet
    });
    Ok(PyBytes::new(py, &packet))
}

/// The payload of a packet with the parity of `words`, and the number of wrong octets that were corrected.
#[pyfunction]
pub(crate) fn correct<'py>(
    py: Python<'py>,
    packet: &[u8],
    words: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, u32)> {
    let words = strength(words)?;
    let (mut octets, corrected) = py.detach(|| {
        let mut octets = packet.to_vec();
        let corrected = PacketCode::new().correct(&mut octets, words);
        (octets, corrected)
    });
    let symbols = corrected.map_err(refused)?.symbols;
    octets.truncate(octets.len() - words.parity_bytes());
    Ok((PyBytes::new(py, &octets), symbols))
}

fn strength(words: &Bound<'_, PyAny>) -> PyResult<FecStrength> {
    let bounds = " words of parity; a packet has 0 to 256";
    let counted = within(words, |words| words.extract(), bounds)?;
    FecStrength::from_words(counted).ok_or_else(|| refused(format!("{counted}{bounds}")))
}

/// The repair symbol of `key` and the density `threshold` over consecutive `sources`.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn encode_window<'py>(
    py: Python<'py>,
    sources: Vec<PyBackedBytes>,
    key: &Bound<'py, PyAny>,
    threshold: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (key, density) = (self::key(key)?, density(threshold)?);
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let symbol = py.detach(|| {
        let mut symbol = Vec::new();
        let encoded = WindowEncoder::new().encode_repair(&sources, key, density, &mut symbol);
        encoded.map(|()| symbol)
    });
    Ok(PyBytes::new(py, &symbol.map_err(refused)?))
}

fn density(threshold: &Bound<'_, PyAny>) -> PyResult<Density> {
    let bounds = " as a density; it has 0 to 15, where 15 is full";
    let counted = octet(threshold, bounds)?;
    Density::new(counted).ok_or_else(|| refused(format!("{counted}{bounds}")))
}

/// A decoder of a sliding window. Threads that share one take turns.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeWindow {
    decoder: Mutex<WindowDecoder>,
}

impl NativeWindow {
    /// Does something with the decoder, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut WindowDecoder) -> T + Send,
    ) -> T {
        py.detach(|| {
            let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut decoder)
        })
    }
}

#[pymethods]
impl NativeWindow {
    #[new]
    fn new(
        first: &Bound<'_, PyAny>,
        sources: &Bound<'_, PyAny>,
        equations: &Bound<'_, PyAny>,
        memory_bytes: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let count =
            |number: &Bound<'_, PyAny>, bounds| within(number, |number| number.extract(), bounds);
        let limits = WindowLimits {
            sources: count(sources, " sources of a window; give 0 or more")?,
            equations: count(equations, " symbols that may wait; give 0 or more")?,
            memory_bytes: count(memory_bytes, " octets of memory; give 0 or more")?,
        };
        Ok(Self {
            decoder: Mutex::new(WindowDecoder::new(ordinal(first)?, limits)),
        })
    }

    /// Takes a source; what it determines besides.
    fn add_source<'py>(
        &self,
        py: Python<'py>,
        ordinal: &Bound<'py, PyAny>,
        payload: &[u8],
    ) -> PyResult<Payloads<'py>> {
        let ordinal = self::ordinal(ordinal)?;
        let rebuilt = self.with(py, |decoder| decoder.add_source(ordinal, payload));
        given(py, rebuilt)
    }

    /// Takes a repair symbol; what it determines. `span` is the first source and their number, `coefficients` are key
    /// and density.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the binding makes values of Python's"
    )]
    fn add_repair<'py>(
        &self,
        py: Python<'py>,
        span: (Bound<'py, PyAny>, Bound<'py, PyAny>),
        coefficients: (Bound<'py, PyAny>, Bound<'py, PyAny>),
        symbol: &[u8],
    ) -> PyResult<Payloads<'py>> {
        let span = RepairSpan {
            first: ordinal(&span.0)?,
            count: within(
                &span.1,
                |count| count.extract(),
                " sources; a symbol spans 1 to 4095",
            )?,
            key: key(&coefficients.0)?,
            density: density(&coefficients.1)?,
        };
        let rebuilt = self.with(py, |decoder| decoder.add_repair(span, symbol));
        given(py, rebuilt)
    }

    /// The number of further symbols that would do in most cases.
    #[getter]
    fn needed(&self, py: Python<'_>) -> usize {
        self.with(py, |decoder| decoder.needed())
    }

    /// Octets that are kept.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        self.with(py, |decoder| decoder.memory_bytes())
    }

    /// Forgets the sources before `ordinal`.
    fn forget_before(&self, py: Python<'_>, ordinal: &Bound<'_, PyAny>) -> PyResult<()> {
        let ordinal = self::ordinal(ordinal)?;
        self.with(py, |decoder| decoder.forget_before(ordinal));
        Ok(())
    }
}

/// Sources that a decoder gave. A unit that came twice, late or for nothing is no error: links do that.
fn given(
    py: Python<'_>,
    outcome: Result<Vec<(u64, Vec<u8>)>, RejectedSymbol>,
) -> PyResult<Payloads<'_>> {
    match outcome {
        Ok(rebuilt) => {
            let payloads = rebuilt.iter();
            Ok(payloads
                .map(|(ordinal, payload)| (*ordinal, PyBytes::new(py, payload)))
                .collect())
        }
        Err(
            RejectedSymbol::Duplicate { .. }
            | RejectedSymbol::Useless
            | RejectedSymbol::Expired { .. }
            | RejectedSymbol::Full { .. },
        ) => Ok(Vec::new()),
        Err(
            wrong @ (RejectedSymbol::Span { .. }
            | RejectedSymbol::Length { .. }
            | RejectedSymbol::Corrupt),
        ) => Err(refused(wrong)),
    }
}
