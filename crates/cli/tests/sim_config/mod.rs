//! A scenario that cannot be used: every mistake is one line that names the file, the line, the field
//! and the remedy, and the exit code is 2.
//!
//! Method: one scenario with every table, and in each case one mistake in it. The text beside a mistake
//! stays as it is.

mod file;
mod flow;
mod hop;
mod others;
mod sweep;

use crate::processes::{Place, run, said};
use std::fs;

const BASE: &str = r#"title = "a base"
[run]
seed = 1
runs = 2
duration = "30s"
lateness = "1ms"
[lan]
rate = "1gbit"
[[hop]]
rate = "5mbit"
delay = "10ms"
queue = "100 packets"
loss = "2% burst 4"
ber = "1e-5"
outages = "1s+1s"
jitter = "2ms"
reorder = "1% by 5ms"
duplicate = "1%"
[hop.forward]
loss = "1%"
[[flow]]
transport = "aerotp"
mode = "nack-mack"
fec_words = 9
bytes = "20kB"
mtu = "1500B"
[[flow]]
transport = "udp"
traffic = "constant-rate"
rate = "1mbit"
write = "1000B"
bytes = "10kB"
[sweep]
"hop.ber" = [0, "1e-5"]
"flow.0.mode, flow.0.fec_words" = [["reliable", 0], ["nack-mack", 24]]
"#;

/// The text to replace, its replacement, and what the error must say: the line, the field, a part of the
/// remedy.
type Mistake<'a> = (&'a str, &'a str, usize, &'a str, &'a str);

fn each_is_one_line_with_file_line_field_and_remedy(mistakes: &[Mistake<'_>]) {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let command = format!("sim {}", file.display());
    let mut wrong = Vec::new();
    for (original, mistake, line, field, remedy) in mistakes {
        assert!(BASE.contains(original), "{original} is in the base");
        fs::write(&file, BASE.replacen(original, mistake, 1)).expect("room");
        let output = run(&command);
        let told = said(&output);
        let expected = format!("fulmar: {}:{line}: `{field}`: ", file.display());
        let right = output.status.code() == Some(2)
            && output.stdout.is_empty()
            && told.lines().count() == 1
            && told.starts_with(&expected)
            && told.contains(remedy);
        if !right {
            let code = output.status.code();
            wrong.push(format!(
                "{original} -> {mistake}: wanted code 2, {expected} and {remedy}; got {code:?} {told}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scenario_without_a_mistake_runs() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    fs::write(&file, BASE).expect("room");
    let right = run(&format!("sim {}", file.display()));
    assert!(right.status.success(), "{}", said(&right));
}
