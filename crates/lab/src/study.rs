//! A scenario file as an experiment, with a digest of all that its results depend on.

use crate::traces::Traces;
use fulmar_settings::Node;
use fulmar_sim::scenario::{Document, SettingsError, points_with};
use fulmar_sim::world::WorldOptions;
use fulmar_sim::{Experiment, OwnParts, SweepPoint};
use std::path::{Path, PathBuf};

/// A scenario file as an experiment.
#[derive(Clone, Debug)]
pub struct Study {
    /// The points and their runs.
    pub experiment: Experiment,
    /// A digest of every point's parameters, and of the traces that they name: all that the results depend
    /// on but for the program.
    pub digest: String,
    /// The scenario as TOML, with all changes and the sweep.
    pub document: String,
    /// The traces that were read.
    pub inputs: Vec<PathBuf>,
}

impl Study {
    /// Reads the document of the file `path`; the traces that it names lie beside it. Its results are the same
    /// from whatever directory the file is named.
    ///
    /// # Errors
    /// A key, a value, a sweep or a trace is wrong; the message names file, line, key and cure.
    pub fn read(path: &Path, document: &Document) -> Result<Self, SettingsError> {
        Self::read_with(path, document, OwnParts::default(), "")
    }

    /// The same, with parts of one's own that the document may name. `own_version` stands for their code, which the
    /// results depend on.
    ///
    /// # Errors
    /// As [`Study::read`].
    pub fn read_with(
        path: &Path,
        document: &Document,
        own: OwnParts,
        own_version: &str,
    ) -> Result<Self, SettingsError> {
        let traces = Traces::below(path.parent().unwrap_or(Path::new(""))).with_own(own);
        let points = points_with(document, &traces)?;
        let mut digest = blake3::Hasher::new();
        traces.digest(&mut digest);
        digest.update(own_version.as_bytes());
        for point in &points {
            // Debug form: quotes and escapes keep two parameters from running into one another.
            digest.update(format!("{:?}{:?}\n", point.varied, point.parameters).as_bytes());
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self {
            experiment: Experiment {
                points,
                scenario: name.to_string_lossy().into_owned(),
                options: WorldOptions::default(),
            },
            digest: digest.finalize().to_hex().to_string(),
            document: canonical(document).to_toml(),
            inputs: traces.into_files(),
        })
    }

    /// The points.
    pub fn points(&self) -> &[SweepPoint] {
        &self.experiment.points
    }

    /// The swept paths, in the order of the sweep.
    pub fn varied(&self) -> Vec<String> {
        let first = self.points().first();
        let varied = first.into_iter().flat_map(|point| &point.varied);
        varied.map(|(path, _)| path.clone()).collect()
    }
}

/// The document in the one form that all have which mean the same sweep: one blank behind each comma between zipped paths.
fn canonical(document: &Document) -> Document {
    let mut document = document.clone();
    if let Some(sweep) = document.root.get_mut("sweep")
        && let Node::Table(axes) = &mut sweep.node
    {
        let spaced = |paths: &str| {
            paths
                .split(',')
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(", ")
        };
        *axes = core::mem::take(axes)
            .into_iter()
            .map(|(paths, values)| (spaced(&paths), values))
            .collect();
    }
    document
}
