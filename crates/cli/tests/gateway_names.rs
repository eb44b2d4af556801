//! A gateway whose peer has a name starts and runs whether or not the name has an address yet.

use crate::processes::{Place, fulmar, run, said, until};
use rustix::process::Signal;
use std::fs::{self, File};

fn configured(place: &Place, address: &str) -> String {
    let path = place.path("gateway.toml").display().to_string();
    let state = place.path("state").display().to_string();
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{state}\"\n[security]\nkind = \"none\"\n\
         [[peer]]\nname = \"ground\"\naddress = \"{address}\"\nrate = \"1mbit\"\n\
         [egress]\nallow = [\"127.0.0.1:1\"]\n"
    );
    fs::write(&path, text).expect("room");
    path
}

/// Runs a gateway until its log has `wanted` lines with `event`; returns its exit code.
fn until_said(address: &str, event: &str, wanted: usize) -> Option<i32> {
    let place = Place::with(0);
    let config = configured(&place, address);
    let log = place.path("log");
    let mut command = fulmar(&format!("gateway -c {config} --log-format json"));
    command.stderr(File::create(&log).expect("room"));
    let mut gateway = crate::processes::Running::start_with_its_stderr(command);
    until(event, || {
        let text = fs::read_to_string(&log).expect("it is there");
        text.lines().filter(|line| line.contains(event)).count() >= wanted
    });
    gateway.signal(Signal::TERM);
    gateway.end().0.code()
}

#[test]
fn a_name_without_an_address_is_tried_again_and_ends_nothing() {
    let name = "no-such-host.invalid:4914";
    assert_eq!(until_said(name, "peer_unresolved", 2), Some(143));
}

#[test]
fn a_name_with_an_address_is_called_there() {
    assert_eq!(until_said("localhost:4914", "peer_resolved", 1), Some(143));
}

#[test]
fn a_name_that_nobody_knows_yet_is_no_error_of_the_configuration() {
    let place = Place::with(0);
    let config = configured(&place, "no-such-host.invalid:4914");
    let output = run(&format!("gateway -c {config} --check"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
