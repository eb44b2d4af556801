//! `fulmar sim --flow-figure`: the packets of a flow between its ends.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::{Context, anyhow};
use fulmar_lab::{Study, flow_figure};
use fulmar_proto::units::{Duration, parse_duration};
use fulmar_sim::experiment::Experiment;
use fulmar_sim::{FlowPackets, FlowWindow};
use std::path::PathBuf;

/// Packets of a figure without `--flow-for`: two screens.
const FIRST_PACKETS: usize = 100;

/// The figure, and the part of the run that it shows.
#[derive(clap::Args, Debug, Default)]
pub(super) struct FigureArgs {
    /// Draw the packets of a flow in the one run there is, as SVG: time goes down, the sender stands left and the receiver right;
    /// data, repetitions, parity, acknowledgements and requests, and what was lost or damaged. The first 100 packets, if nothing else
    /// is said.
    #[arg(id = "flow_figure", long = "flow-figure", value_name = "FILE.svg", conflicts_with_all = ["swarm", "out", "auto_vs_fixed"])]
    pub(super) file: Option<PathBuf>,
    /// With --flow-figure: the flow, from 0.
    #[arg(long = "flow", value_name = "N", requires = "flow_figure")]
    flow: Option<usize>,
    /// With --flow-figure: the time of the run at which the figure begins.
    #[arg(long = "flow-from", value_name = "TIME", requires = "flow_figure", value_parser = parse_duration)]
    start: Option<Duration>,
    /// With --flow-figure: the time that it shows, with at most 2,000 packets.
    #[arg(long = "flow-for", value_name = "TIME", requires = "flow_figure", value_parser = parse_duration)]
    span: Option<Duration>,
}

impl FigureArgs {
    /// Refuses a flow that the scenario does not have.
    pub(super) fn check(&self, study: &Study) -> Result<(), Failure> {
        let flows = study
            .points()
            .first()
            .map_or(0, |point| point.plan.flows.len());
        match self.flow {
            Some(flow) if flow >= flows => {
                let last = flows.saturating_sub(1);
                let problem = format!("--flow {flow}: there is no such flow; the last is {last}");
                Err(anyhow!(problem)).or_exit(Exit::Usage)
            }
            _ => Ok(()),
        }
    }

    /// The part of the run that is drawn, if one is.
    pub(super) fn window(&self) -> Option<FlowWindow> {
        self.file.as_ref().map(|_| FlowWindow {
            flow: self.flow.unwrap_or_default(),
            start: self.start.unwrap_or_default(),
            span: self.span,
            packets_max: self.span.map_or(FIRST_PACKETS, |_| flow_figure::ARROWS_MAX),
        })
    }

    /// Writes the figure.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn draw(
        &self,
        experiment: &Experiment,
        noted: Option<&FlowPackets>,
    ) -> Result<(), Failure> {
        let (Some(file), Some(window), Some(noted)) = (&self.file, self.window(), noted) else {
            return Ok(());
        };
        std::fs::write(file, flow_figure::draw(experiment, window, noted))
            .with_context(|| format!("--flow-figure: cannot write {}", file.display()))
            .or_exit(Exit::Device)?;
        let (count, shown) = (noted.packets.len(), file.display());
        eprintln!("fulmar: {count} packets are drawn in {shown}");
        match noted.left_out {
            0 => {}
            more if self.span.is_some() => {
                eprintln!("fulmar: {more} more had no room; shorten --flow-for");
            }
            more => {
                eprintln!("fulmar: {more} more follow; --flow-from and --flow-for choose others");
            }
        }
        Ok(())
    }
}
