//! `fulmar doctor`.

use crate::commands::gateway;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::Listing;
use fulmar_net::doctor::{self, Finding, FindingVerdict};
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar doctor
      looks at the kernel, its limits and offloads, timers, interfaces and privileges
  fulmar doctor -c /etc/fulmar/gateway.toml
      and at that gateway's keys, port and directories, and whether its peers answer

Nothing is changed. Ends with 1 if anything is `bad`: what was asked for cannot work as it is.
";

/// The arguments of `fulmar doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Also look at what this gateway's configuration needs.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON record a finding.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Record<'a> {
    schema: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Checks, and prints the findings and the remedies.
///
/// # Errors
/// The configuration cannot be read.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    // A wrong file is reported before anything is tried.
    let config = args.config.as_deref().map(gateway::read).transpose()?;
    let mut findings = doctor::machine();
    if let Some(config) = &config {
        findings.extend(doctor::gateway(config));
    }
    if args.json {
        for finding in &findings {
            output::record(&Record {
                schema: "fulmar.doctor.v1",
                kind: "finding",
                finding,
            })?;
        }
    } else {
        output::line(&table(&findings))?;
        for finding in &findings {
            if let Some(remedy) = &finding.remedy {
                output::line(&format!("{}: {remedy}", finding.check))?;
            }
        }
    }
    let is_bad = findings
        .iter()
        .any(|finding| finding.verdict == FindingVerdict::Bad);
    Ok(if is_bad { Exit::Failed } else { Exit::Done })
}

fn table(findings: &[Finding]) -> String {
    let headings = ["verdict", "check", "found"];
    let mut table = Listing::new(headings, headings.len());
    for finding in findings {
        let verdict = match finding.verdict {
            FindingVerdict::Good => "good",
            FindingVerdict::Poor => "poor",
            FindingVerdict::Bad => "BAD",
        };
        table.row([verdict, &finding.check, &finding.found]);
    }
    table.to_string()
}
