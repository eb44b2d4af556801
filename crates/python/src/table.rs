//! Arrow tables for Python, by the Arrow `PyCapsule` interface.

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// The metadata of a column, by key.
type Metadata = Vec<(String, String)>;

/// A table in memory.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeTable {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl NativeTable {
    /// The number of rows.
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The columns: name, type, and metadata such as the unit.
    fn columns(&self) -> Vec<(String, String, Metadata)> {
        let fields = self.schema.fields().iter();
        fields
            .map(|field| {
                let entries = field.metadata().iter();
                let mut metadata: Vec<_> = entries.map(|(k, v)| (k.clone(), v.clone())).collect();
                metadata.sort();
                (
                    field.name().clone(),
                    field.data_type().to_string(),
                    metadata,
                )
            })
            .collect()
    }

    /// The values of a column.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.schema.index_of(name);
        let index = index.map_err(|error| PyKeyError::new_err(error.to_string()))?;
        let values = PyList::empty(py);
        for batch in &self.batches {
            append(&values, batch.column(index))?;
        }
        Ok(values)
    }

    /// The schema as the Arrow `PyCapsule` interface has it.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema);
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as the Arrow `PyCapsule` interface has them; no value is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer that cannot cast give what it has.
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn append(values: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    match column.data_type() {
        DataType::Boolean => column
            .as_boolean()
            .iter()
            .try_for_each(|v| values.append(v)),
        DataType::UInt64 => {
            let counts = column.as_primitive::<UInt64Type>().iter();
            counts.into_iter().try_for_each(|v| values.append(v))
        }
        DataType::Int64 => {
            let differences = column.as_primitive::<Int64Type>().iter();
            differences.into_iter().try_for_each(|v| values.append(v))
        }
        DataType::Float64 => {
            let reals = column.as_primitive::<Float64Type>().iter();
            reals.into_iter().try_for_each(|v| values.append(v))
        }
        DataType::Utf8 => column
            .as_string::<i32>()
            .iter()
            .try_for_each(|v| values.append(v)),
        other => Err(PyValueError::new_err(format!("a column of type {other}"))),
    }
}
