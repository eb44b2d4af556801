//! The native half of the Python package `fulmar_lab`: studies, their parts, tables that Arrow's consumers read
//! without a copy, the codes of the protocols, what a link can carry, and ends with real sockets. The Python half
//! (crates/python/python) is what users see.

mod codes;
mod ends;
mod links;
mod own;
mod own_transport;
mod part;
mod recording;
mod study;
mod table;
mod waiting;

use pyo3::prelude::*;

/// The module `fulmar_lab._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::codes::{
        FecError, NativeWindow, append_parity, correct, decode_block, encode_block, encode_window,
    };
    #[pymodule_export]
    use crate::ends::{
        EndKey, NativeCall, NativeEndConfig, NativeEndpoint, NativeListener, NativeMessages,
        NativeStream, check_public_key,
    };
    #[pymodule_export]
    use crate::links::{fit, plan};
    #[pymodule_export]
    const WINDOW_MAX: u32 = fulmar_trace::SequenceOptions::WINDOW_MAX;
    #[pymodule_export]
    use crate::own::{Fate, RepairSeen};
    #[pymodule_export]
    use crate::own_transport::Turn;
    #[pymodule_export]
    use crate::recording::{NativeRecording, hop_tables, perf_keys, recorded_link};
    #[pymodule_export]
    use crate::study::{
        NativeStudy, ScenarioError, SweepError, description, merge, read_table, table_keys,
    };
    #[pymodule_export]
    use crate::table::NativeTable;
}
