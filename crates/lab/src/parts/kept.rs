//! The parts of a sweep that a directory has already, however it was cut when they were made, and those that remain.

use super::SweepPart;
use super::file::About;
use crate::study::Study;
use core::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A part in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPart {
    /// Its runs.
    pub part: SweepPart,
    /// Its file.
    pub file: PathBuf,
}

/// The parts of a study that a directory has, made by one build of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptParts {
    /// Parts in the order of their runs. No run is in two of them.
    pub parts: Vec<KeptPart>,
    /// Files that nobody needs: parts with runs that others have as well, and halves of parts, which a killed process left.
    pub spare: Vec<PathBuf>,
}

impl KeptParts {
    /// Reads what the files of a directory say of themselves. Files of other studies and builds are passed over.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn found(study: &Study, build: &str, directory: &Path) -> io::Result<Self> {
        let whole = About::of(study);
        let mut kept = Self::default();
        let mut all = Vec::new();
        for entry in fs::read_dir(directory)? {
            let file = entry?.path();
            let kind = file.extension().unwrap_or_default();
            if kind == "new" {
                kept.spare.push(file);
            } else if kind == "parquet"
                && let Some(part) = SweepPart::of_whole(&whole, build, &file)
            {
                all.push(KeptPart { part, file });
            }
        }
        // Of those that begin together the longest is first; by name besides, so that the choice is the same each time.
        all.sort_by(|one, other| {
            let order = |kept: &KeptPart| (kept.part.runs.start, Reverse(kept.part.runs.end));
            (order(one), &one.file).cmp(&(order(other), &other.file))
        });
        for next in all {
            if next.part.runs.start >= kept.end() {
                kept.parts.push(next);
            } else {
                kept.spare.push(next.file);
            }
        }
        Ok(kept)
    }

    /// The number of runs in the parts.
    pub fn runs(&self) -> usize {
        self.parts.iter().map(|kept| kept.part.runs.len()).sum()
    }

    /// The parts that remain to be made, of `part_runs` runs at most.
    pub fn missing(&self, study: &Study, part_runs: usize) -> Vec<SweepPart> {
        let total = study.experiment.run_count();
        let ends = self.parts.iter().map(|kept| kept.part.runs.end);
        let starts = self.parts.iter().map(|kept| kept.part.runs.start);
        let gaps = [0].into_iter().chain(ends).zip(starts.chain([total]));
        let cut = |(start, end): (usize, usize)| {
            (start..end)
                .step_by(part_runs.max(1))
                .map(move |first| SweepPart {
                    runs: first..end.min(first.saturating_add(part_runs.max(1))),
                })
        };
        gaps.flat_map(cut).collect()
    }

    fn end(&self) -> usize {
        self.parts.last().map_or(0, |kept| kept.part.runs.end)
    }
}
