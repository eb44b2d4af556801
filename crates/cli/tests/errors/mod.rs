//! Every failure is reported in one clear line, with the documented exit code.
//!
//! Method: the binary from outside. Every case names the code it expects and a word that the line
//! must contain: the flag, the file or the remedy.

mod files;
mod peers;
mod records;
mod usage;

use crate::processes::{Place, Running, fulmar, receiver, run, said, until};
use rustix::process::Signal;

#[track_caller]
fn fails(arguments: &str, code: i32, words: &[&str]) {
    let output = run(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments}: no {word:?} in {said:?}");
    }
    assert!(
        output.stdout.is_empty(),
        "{arguments}: talk belongs on stderr"
    );
}

#[test]
fn signals_end_every_command_with_their_code() {
    let place = Place::with(1_000_000);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut link = Running::start(fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9"));
        link.address();
        link.signal(signal);
        let last = link.record();
        assert_eq!(last["kind"], "end", "{last}");
        assert!(
            last["lateness_mean_s"].is_null(),
            "nothing has no mean: {last}"
        );
        assert_eq!(link.code(), Some(code));

        let mut receiver = receiver(&place, "");
        let to = receiver.address();
        let mut sender =
            Running::start(fulmar(&format!("send {} {to} --rate 1mbit", place.file())));
        until("the transfer to begin", || {
            place.path("in/file.fulmar-part").exists()
        });
        sender.signal(signal);
        let (status, said) = sender.end();
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(
            said.contains("stopped; send it again to continue"),
            "{said}"
        );
        let told = receiver.record();
        assert_eq!(told["verdict"], "abandoned");
        let error = told["error"].as_str().expect("it is no success");
        assert!(
            error.contains("one that starts again continues there"),
            "{told}"
        );
        receiver.signal(signal);
        assert_eq!(receiver.code(), Some(code));
        std::fs::remove_file(place.path("in/file.fulmar-part")).unwrap();
        // There is no such file if nothing had arrived.
        drop(std::fs::remove_file(place.path("in/file.fulmar-state")));
    }
}

#[test]
fn the_help_of_every_command_has_exit_codes_and_examples() {
    for command in ["", "demo ", "emulate ", "recv ", "send ", "sim "] {
        for flag in ["-h", "--help"] {
            let output = run(&format!("{command}{flag}"));
            assert_eq!(output.status.code(), Some(0));
            let help = String::from_utf8(output.stdout).unwrap();
            let words = [
                "0 done",
                "1 the run",
                "2 usage",
                "3 peer",
                "4 link",
                "5 perm",
                "130",
                "143",
            ];
            for word in words {
                assert!(help.contains(word), "no {word:?} in {help}");
            }
            assert!(command.is_empty() || help.contains("Examples:"), "{help}");
        }
    }
}
