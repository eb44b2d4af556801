//! The codes of the protocols, for Python: blocks, sliding windows, and parity inside a packet.
//!
//! Octets go in and out as `bytes`. What a code refuses is a `FecError`, whose message says what it has and what it
//! needs.

use core::num::NonZeroU8;
use fulmar_proto::fec::block::{BlockDecoder, encode_repair};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::fec::window::{
    Density, RejectedSymbol, RepairSpan, WindowDecoder, WindowEncoder, WindowLimits,
};
use fulmar_proto::units::FecStrength;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::fmt::Display;

create_exception!(
    fulmar_lab,
    FecError,
    PyValueError,
    "Octets that cannot be encoded, decoded or corrected; the message says what is missing."
);

/// Sources that were rebuilt: ordinal and payload.
type Payloads<'py> = Vec<(u64, Bound<'py, PyBytes>)>;

fn refused(reason: impl Display) -> PyErr {
    FecError::new_err(reason.to_string())
}

/// The repair symbols with indices 0 to `repairs` - 1 of a block of `sources`.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn encode_block(
    py: Python<'_>,
    sources: Vec<PyBackedBytes>,
    repairs: u8,
) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let symbols = (0..repairs).map(|index| {
        let mut symbol = Vec::new();
        encode_repair(&sources, index, &mut symbol).map_err(refused)?;
        Ok(PyBytes::new(py, &symbol))
    });
    symbols.collect()
}

/// All sources of a block of `k`, out of any k of its units. A unit has its number in the block: sources below `k`,
/// repair symbols from `k` on.
#[pyfunction]
pub(crate) fn decode_block(
    py: Python<'_>,
    k: u8,
    units: Vec<(u8, PyBackedBytes)>,
) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    let sources =
        NonZeroU8::new(k).ok_or_else(|| refused("a block has 1 to 255 sources, not 0"))?;
    let mut decoder = BlockDecoder::new(sources);
    // Sources first: they need no decoding, and say how long a symbol is at least.
    let (plain, coded): (Vec<_>, Vec<_>) = units.into_iter().partition(|&(number, _)| number < k);
    for (number, payload) in plain {
        decoder.add_source(number, &payload).map_err(refused)?;
    }
    for (number, symbol) in coded {
        if decoder.needed() > 0 {
            decoder.add_repair(number - k, &symbol).map_err(refused)?;
        }
    }
    let mut rebuilt = decoder.decode().map_err(refused)?.into_iter();
    let all = (0..k).map(|number| match decoder.source(number) {
        Some(payload) => Some(PyBytes::new(py, payload)),
        None => rebuilt
            .next()
            .map(|(_, payload)| PyBytes::new(py, &payload)),
    });
    all.collect::<Option<_>>()
        .ok_or_else(|| refused("a source is missing though the block is complete"))
}

/// `payload` with the parity of `words` behind it.
#[pyfunction]
pub(crate) fn append_parity<'py>(
    py: Python<'py>,
    payload: &[u8],
    words: u16,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut packet = payload.to_vec();
    PacketCode::new().append_parity(&mut packet, 0, strength(words)?);
    Ok(PyBytes::new(py, &packet))
}

/// The payload of a packet with the parity of `words`, and the number of wrong octets that were corrected.
#[pyfunction]
pub(crate) fn correct<'py>(
    py: Python<'py>,
    packet: &[u8],
    words: u16,
) -> PyResult<(Bound<'py, PyBytes>, u32)> {
    let words = strength(words)?;
    let mut octets = packet.to_vec();
    let corrected = PacketCode::new().correct(&mut octets, words);
    let symbols = corrected.map_err(refused)?.symbols;
    octets.truncate(octets.len() - words.parity_bytes());
    Ok((PyBytes::new(py, &octets), symbols))
}

fn strength(words: u16) -> PyResult<FecStrength> {
    FecStrength::from_words(words)
        .ok_or_else(|| refused(format!("{words} words of parity; a packet has 0 to 256")))
}

/// The repair symbol of `key` and the density `threshold` over consecutive `sources`.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn encode_window(
    py: Python<'_>,
    sources: Vec<PyBackedBytes>,
    key: u16,
    threshold: u8,
) -> PyResult<Bound<'_, PyBytes>> {
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let mut symbol = Vec::new();
    WindowEncoder::new()
        .encode_repair(&sources, key, density(threshold)?, &mut symbol)
        .map_err(refused)?;
    Ok(PyBytes::new(py, &symbol))
}

fn density(threshold: u8) -> PyResult<Density> {
    Density::new(threshold).ok_or_else(|| {
        refused(format!(
            "a density of {threshold}; it has 0 to 15, where 15 is full"
        ))
    })
}

/// A decoder of a sliding window.
#[pyclass(module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeWindow {
    decoder: WindowDecoder,
}

#[pymethods]
impl NativeWindow {
    #[new]
    fn new(first: u64, sources: usize, equations: usize, memory_bytes: usize) -> Self {
        let limits = WindowLimits {
            sources,
            equations,
            memory_bytes,
        };
        Self {
            decoder: WindowDecoder::new(first, limits),
        }
    }

    /// Takes a source; what it determines besides.
    fn add_source<'py>(
        &mut self,
        py: Python<'py>,
        ordinal: u64,
        payload: &[u8],
    ) -> PyResult<Payloads<'py>> {
        given(py, self.decoder.add_source(ordinal, payload))
    }

    /// Takes a repair symbol; what it determines. `span` is the first source and their number, `coefficients` are key
    /// and density.
    fn add_repair<'py>(
        &mut self,
        py: Python<'py>,
        span: (u64, u16),
        coefficients: (u16, u8),
        symbol: &[u8],
    ) -> PyResult<Payloads<'py>> {
        let span = RepairSpan {
            first: span.0,
            count: span.1,
            key: coefficients.0,
            density: density(coefficients.1)?,
        };
        given(py, self.decoder.add_repair(span, symbol))
    }

    /// The number of further symbols that would do in most cases.
    #[getter]
    fn needed(&self) -> usize {
        self.decoder.needed()
    }

    /// Octets that are kept.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.decoder.memory_bytes()
    }

    /// Forgets the sources before `ordinal`.
    fn forget_before(&mut self, ordinal: u64) {
        self.decoder.forget_before(ordinal);
    }
}

/// What a decoder gave. What came twice, late or for nothing is no error: links do that.
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
