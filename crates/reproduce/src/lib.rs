//! Figures and claims of five papers on transport over lossy links, run again in the simulator: for each
//! paper a page with its figures, their data, and a verdict on every claim.
//!
//! A [`Paper`] is a table: families of runs, figures over them, and claims of the paper in our own
//! words, each with a check. [`Reproduction`] makes one experiment of all runs, and of its results
//! the files: a page, and for each figure a picture and its data.
//!
//! ```
//! use fulmar_reproduce::{FSO, Reproduction};
//! use fulmar_sim::ExperimentProgress;
//! let figure = Reproduction::figure(&FSO, "fig-2-testbed", None).expect("the paper has it")?;
//! let runs = figure.experiment().run(1, &ExperimentProgress::default())?;
//! let outcome = figure.outcome(runs, "fulmar reproduce fso --figure fig-2-testbed")?;
//! let names: Vec<&str> = outcome.files.iter().map(|file| file.name.as_str()).collect();
//! assert_eq!(names, ["fig-2-testbed.csv", "fig-2-testbed.svg"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//! - No verdict is written down anywhere: each is computed from the runs that the page shows.
//! - The same paper and number of runs give the same octets, for every number of threads.
//! - No clock, file or socket here; the caller runs the experiment and writes the files.
//!
//! Sources: `aerotp-multi-mode` and `aerotp-hybrid`, the AeroTP papers; conditions as in
//! reference/README.md (ns-3). `slacp`, the slides of Kojo (FDPW 2005). `lt-tcp`, the LT-TCP +
//! LL-HARQ slides. `fso`, the paper on free-space optical links (Epple). `auto` has no paper: its claims are
//! Fulmar's own goals for `mode = "auto"`.

mod airborne;
mod auto;
mod claims;
mod csv;
mod data;
mod exhibit;
mod facts;
mod family;
mod few_runs;
mod figure;
mod fso;
mod graph;
mod hybrid;
mod lt_tcp;
mod measure;
mod multi_mode;
mod output_file;
mod overlay;
mod overview;
mod page;
mod paper;
mod parameter;
mod plot;
mod reading;
mod reproduction;
mod scenario;
mod slacp;
mod style;

pub use auto::AUTO;
pub use claims::{Checked, ClaimVerdict};
pub use few_runs::FewRuns;
pub use fso::FSO;
pub use hybrid::HYBRID;
pub use lt_tcp::LT_TCP;
pub use multi_mode::MULTI_MODE;
pub use output_file::OutputFile;
pub use overview::{Attempt, few_runs, overview};
pub use paper::{Absent, Paper};
pub use reproduction::{PaperOutcome, Reproduction, ReproductionError};
pub use slacp::SLACP;

/// Every paper of which figures are made, in the order of the overview. A new paper is a new row.
pub static PAPERS: [&Paper; 6] = [&MULTI_MODE, &HYBRID, &SLACP, &LT_TCP, &FSO, &AUTO];

#[cfg(test)]
mod tests {
    use super::family::Family;
    use super::{HYBRID, MULTI_MODE, PAPERS, Reproduction};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_paper_has_valid_scenarios_and_its_tables_name_what_there_is() {
        for paper in PAPERS {
            let reproduction = Reproduction::new(paper, Some(1));
            assert!(reproduction.is_ok(), "{reproduction:?}");
            let families: BTreeSet<&str> = paper.families.iter().map(|family| family.id).collect();
            assert_eq!(families.len(), paper.families.len(), "{}", paper.name);
            let figures: BTreeSet<&str> = paper.figures().map(|figure| figure.id).collect();
            assert_eq!(figures.len(), paper.figures().count(), "{}", paper.name);
            for figure in paper.figures() {
                assert!(families.contains(figure.family), "{}", figure.id);
            }
            let claims = || paper.claims.iter().copied().flatten();
            let ids: BTreeSet<&str> = claims().map(|claim| claim.id).collect();
            assert_eq!(ids.len(), claims().count(), "{}", paper.name);
            for claim in claims() {
                assert!(claim.criterion.starts_with("Reproduced "), "{}", claim.id);
                let exhibits = || paper.exhibits.iter().map(|exhibit| exhibit.id);
                let known = |id: &&str| figures.contains(id) || exhibits().any(|own| own == *id);
                assert!(claim.see.iter().all(known), "{}: {:?}", claim.id, claim.see);
            }
        }
    }

    #[test]
    fn figures_of_all_papers_have_room_in_one_directory_and_most_keep_their_names() {
        let mut files = BTreeMap::new();
        for paper in PAPERS {
            for (name, title) in paper.figure_titles() {
                let there = *files.entry(paper.lone_name(name)).or_insert(title);
                assert_eq!(there, title, "{}: {name}", paper.name);
            }
        }
        assert_eq!(HYBRID.lone_name("modes-goodput"), "modes-goodput");
        // The same figure, in both papers.
        assert_eq!(HYBRID.lone_name("tcp-goodput"), "tcp-goodput");
        let name = HYBRID.lone_name("strength-goodput");
        assert_eq!(name, "aerotp-hybrid-strength-goodput");
    }

    /// The reading to which a family's runs belong, of the readings under which every claim on figures is
    /// judged.
    fn reading(family: &Family) -> &'static str {
        let sets = family.sets.iter().map(|set| (*set).to_owned());
        let says: Vec<String> = sets.chain(family.x.written()).collect();
        let lines = family.lines.iter().flat_map(|line| line.sets).copied();
        let says_of = |text: &str| says.iter().any(|said| said.contains(text));
        match () {
            () if says_of("flow.bytes=20MB") => "20 MB",
            () if says_of("hop.delay=10ms") => "10 ms",
            () if says_of("per octet")
                || lines.into_iter().any(|set| set.contains("per octet")) =>
            {
                "per octet"
            }
            () => "as printed",
        }
    }

    #[test]
    fn every_figure_of_the_aerotp_papers_is_drawn_under_each_reading_it_is_judged_under() {
        let all = BTreeSet::from(["as printed", "10 ms", "per octet", "20 MB"]);
        for (paper, figures) in [(&MULTI_MODE, 13..=24), (&HYBRID, 4..=11)] {
            for number in figures {
                let place = format!("Figure {number}");
                let drawn = paper.figures().filter(|figure| figure.place == place);
                let families = drawn.filter_map(|figure| {
                    let mut families = paper.families.iter();
                    families.find(|family| family.id == figure.family)
                });
                let readings: BTreeSet<&str> = families.map(reading).collect();
                assert_eq!(readings, all, "{}: {place}", paper.name);
            }
        }
    }
}
